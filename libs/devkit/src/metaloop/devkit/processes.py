"""Child processes that never outlive us: started until they are ready, restarted when they crash, ended when we end.

- The kernel kills every child when this process ends, and every child stays in our process group.
- A child that ends by itself is restarted; a child that *we* stopped stays down until it is started.
- A child in a crash loop ends the whole group with `CrashLoop`: to hide it would only waste the user's time.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from metaloop.devkit import console
from metaloop.devkit.crashloop import CrashHistory
from metaloop.devkit.errors import CrashLoop, DevkitError, StartFailed, tail_of
from metaloop.devkit.ports import free_port
from metaloop.devkit.probes import Probe
from metaloop.devkit.spawn import exit_text, spawn

_POLL_SECONDS = 0.05
_PORT_TAKEN = "address already in use"
_PORT_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and how to tell that it is ready."""

    name: str
    argv: tuple[str, ...]
    ready: Probe
    folder: Path
    """Its working directory, and where its log is written."""
    env: Mapping[str, str] | None = None
    """The whole environment; None: ours."""
    start_seconds: float = 60.0
    """How long it may take to become ready."""
    stop_seconds: float = 0.0
    """How long it may take to end after SIGTERM before it gets SIGKILL.

    0: it gets SIGKILL at once, as it has nothing to save.
    """

    @property
    def log(self) -> Path:
        """The file that its output goes to."""
        return self.folder / f"{self.name}.log"


class Daemon:
    """One program of a group, whether it runs or not; made by `Group.start`."""

    def __init__(self, program: Program, *, tasks: asyncio.TaskGroup) -> None:
        """Nothing runs yet."""
        self.program = program
        self._tasks = tasks
        self._process: asyncio.subprocess.Process | None = None
        self._restarter: asyncio.Task[None] | None = None
        self._crashes = CrashHistory()

    @property
    def name(self) -> str:
        """Its name in messages, and of its log."""
        return self.program.name

    @property
    def log(self) -> Path:
        """The file that its output goes to."""
        return self.program.log

    @property
    def pid(self) -> int:
        """The id of its current process; raises DevkitError before the first start."""
        if self._process is None:
            raise DevkitError(f"{self.name} was not started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process is alive."""
        return self._process is not None and self._process.returncode is None

    def cpu_seconds(self) -> float:
        """User and system time of its current process, without children."""
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def rss_bytes(self) -> int:
        """Its resident memory."""
        return psutil.Process(self.pid).memory_info().rss

    async def start(self) -> None:
        """Return when it is ready, and restart it from then on when it ends.

        Raises `StartFailed` if it does not become ready.
        """
        if self.is_running:
            return
        await self._cancel_restarter()
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.kill)
            self._process = await self._spawn()
            await self._await_first_ready()
            undo.pop_all()
        self._restarter = self._tasks.create_task(self._restart_when_it_ends(), name=f"restart {self.name}")

    async def stop(self) -> None:
        """End it with SIGTERM, then with SIGKILL when its time is over; it stays down until `start`."""
        await self._cancel_restarter()
        if self.program.stop_seconds and self._signal(signal.SIGTERM):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exit_code(), self.program.stop_seconds)
        await self.kill()

    async def kill(self) -> None:
        """End it with SIGKILL; it stays down until `start`."""
        await self._cancel_restarter()
        if self._signal(signal.SIGKILL):
            await self._exit_code()

    def pause(self) -> None:
        """Stop it with SIGSTOP: its connections stay open, but nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it after `pause`."""
        self._signal(signal.SIGCONT)

    def kill_now(self) -> None:
        """Send SIGKILL and return without waiting, for a shutdown that is itself cancelled."""
        self._signal(signal.SIGKILL)

    async def _await_first_ready(self) -> None:
        try:
            async with asyncio.timeout(self.program.start_seconds):
                ready = await self._becomes_ready()
        except TimeoutError:
            raise self._start_failed(f"not ready after {self.program.start_seconds:g} s") from None
        if not ready:
            raise self._start_failed(f"it ended with {exit_text(await self._exit_code())}")

    async def _restart_when_it_ends(self) -> None:
        """Runs until it is cancelled, or raises `CrashLoop`."""
        was_ready = True
        while True:
            code = await self._exit_code()
            self._crashes.record(code, was_ready=was_ready, now=time.monotonic())
            if self._crashes.is_crash_loop:
                reason = f"{self._crashes.limit} times within {self._crashes.within_seconds:g} s, last with {exit_text(code)}"
                raise CrashLoop(self.name, reason, tail=tail_of(self.log))
            console.message(f"{self.name} ended with {exit_text(code)}; restarting it")
            await asyncio.sleep(self._crashes.backoff_seconds)
            self._process = await self._spawn()
            was_ready = await self._becomes_ready()

    async def _becomes_ready(self) -> bool:
        """Whether it is ready; False when it ends before."""
        while self.is_running:
            if await self.program.ready():
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _cancel_restarter(self) -> None:
        if self._restarter is None:
            return
        self._restarter.cancel()
        await asyncio.wait([self._restarter])
        self._restarter = None

    async def _exit_code(self) -> int:
        return await self._process.wait() if self._process else 0

    async def _spawn(self) -> asyncio.subprocess.Process:
        program = self.program
        return await spawn(program.argv, folder=program.folder, log=program.log, env=program.env)

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal; False if there is no live process."""
        if self._process is None or self._process.returncode is not None:
            return False
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        return True

    def _start_failed(self, reason: str) -> StartFailed:
        return StartFailed(self.name, reason, tail=tail_of(self.log))


class Group:
    """Daemons that end together; made by `group()`."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        """Start empty; `tasks` holds the task that restarts each daemon."""
        self._tasks = tasks
        self._daemons: list[Daemon] = []

    async def start(self, program: Program) -> Daemon:
        """A new daemon of this group that is ready."""
        daemon = Daemon(program, tasks=self._tasks)
        await daemon.start()
        self._daemons.append(daemon)
        return daemon

    async def start_all(self, programs: Sequence[Program]) -> list[Daemon]:
        """A new daemon for each program, started concurrently; the first failure ends the others."""
        async with asyncio.TaskGroup() as starts:
            tasks = [starts.create_task(self.start(program)) for program in programs]
        return [task.result() for task in tasks]

    async def aclose(self) -> None:
        """End all daemons concurrently; no process of the group is left, even if this is cancelled."""
        try:
            await self._stop_all()
        finally:
            for daemon in self._daemons:
                daemon.kill_now()

    async def _stop_all(self) -> None:
        async with asyncio.TaskGroup() as stops:
            for daemon in self._daemons:
                stops.create_task(daemon.stop())


@asynccontextmanager
async def group() -> AsyncIterator[Group]:
    """A group whose daemons end with the block; a daemon in a crash loop ends the block with `CrashLoop`."""
    try:
        async with asyncio.TaskGroup() as tasks, aclosing(Group(tasks)) as daemons:
            yield daemons
    except BaseExceptionGroup as failures:
        raise _root_of(failures) from None


async def start_on_free_port(daemons: Group, program: Callable[[int], Program]) -> tuple[Daemon, int]:
    """The program, started on a free port; on another one if somebody takes the first before the program does."""
    for _ in range(_PORT_ATTEMPTS - 1):
        port = free_port()
        if daemon := await _start_unless_port_is_taken(daemons, program(port)):
            return daemon, port
    port = free_port()
    return await daemons.start(program(port)), port


async def _start_unless_port_is_taken(daemons: Group, program: Program) -> Daemon | None:
    try:
        return await daemons.start(program)
    except StartFailed as failure:
        if _PORT_TAKEN not in failure.tail.lower():
            raise
        return None


def _root_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure to show to the user: what a daemon or the block raised, without the exception groups around it."""
    first = failures.exceptions[0]
    return _root_of(first) if isinstance(first, BaseExceptionGroup) else first
