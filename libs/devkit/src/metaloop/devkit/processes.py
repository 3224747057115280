"""Child processes that never outlive us: started until ready, kept running, and ended however we end.

- Every child is tied to this process by the kernel, and stays in our process group.
- What dies by itself is started again; what *we* stopped stays stopped until it is told to start.
- A child that keeps dying ends the whole group with `KeepsDying`: hiding it would only waste the user's time.
"""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from metaloop.devkit import console
from metaloop.devkit.deaths import Deaths
from metaloop.devkit.errors import DevkitError, KeepsDying, StartFailed, tail_of
from metaloop.devkit.ports import free_port
from metaloop.devkit.probes import Probe
from metaloop.devkit.spawn import exit_text, spawn

_POLL_SECONDS = 0.05
_PORT_TAKEN = "address already in use"
_PORT_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run, and how to see that it is ready."""

    name: str
    argv: tuple[str, ...]
    ready: Probe
    folder: Path
    """Working directory; its log is written there too."""
    env: Mapping[str, str] | None = None
    """The whole environment; ours when None."""
    start_seconds: float = 60.0
    """How long it may take until it is ready."""
    stop_seconds: float = 0.0
    """How long it may take to end on SIGTERM before it gets SIGKILL; at once when 0, for what has nothing to save."""

    @property
    def log(self) -> Path:
        """Where its output goes."""
        return self.folder / f"{self.name}.log"


class Daemon:
    """One program of a group, running or not; made by `Group.start`."""

    def __init__(self, program: Program, *, tasks: asyncio.TaskGroup) -> None:
        """Hold the program; nothing runs yet."""
        self.program = program
        self._tasks = tasks
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._deaths = Deaths()

    @property
    def name(self) -> str:
        """Its name in messages, and that of its log."""
        return self.program.name

    @property
    def log(self) -> Path:
        """The file its output goes to."""
        return self.program.log

    @property
    def pid(self) -> int:
        """The process id of its present life."""
        if self._process is None:
            raise DevkitError(f"{self.name} was not started")
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether its process is alive now."""
        return self._process is not None and self._process.returncode is None

    def cpu_seconds(self) -> float:
        """User and system time of its present process, without its children."""
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system

    def rss_bytes(self) -> int:
        """Its resident memory."""
        return psutil.Process(self.pid).memory_info().rss

    async def start(self) -> None:
        """Run it until it is ready, and keep it running from then on; `StartFailed` if it ends or stays silent before."""
        if self.is_running:
            return
        await self._forget_keeper()
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.kill)
            self._process = await self._spawn()
            await self._await_first_ready()
            undo.pop_all()
        self._keeper = self._tasks.create_task(self._keep(), name=f"keep {self.name}")

    async def stop(self) -> None:
        """End it with SIGTERM, and with SIGKILL when its time is over; it stays down until `start`."""
        await self._forget_keeper()
        if self.program.stop_seconds and self._signal(signal.SIGTERM):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exit_code(), self.program.stop_seconds)
        await self.kill()

    async def kill(self) -> None:
        """End it with SIGKILL; it stays down until `start`."""
        await self._forget_keeper()
        if self._signal(signal.SIGKILL):
            await self._exit_code()

    def pause(self) -> None:
        """Stall it (SIGSTOP): its connections stay open, and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on after `pause`."""
        self._signal(signal.SIGCONT)

    def kill_now(self) -> None:
        """Send SIGKILL and return without waiting: the last resort of a shutdown that is itself cut short."""
        self._signal(signal.SIGKILL)

    async def _await_first_ready(self) -> None:
        try:
            async with asyncio.timeout(self.program.start_seconds):
                ready = await self._is_ready_before_its_end()
        except TimeoutError:
            raise self._start_failed(f"not ready after {self.program.start_seconds:g} s") from None
        if not ready:
            raise self._start_failed(f"it ended with {exit_text(await self._exit_code())}")

    async def _keep(self) -> None:
        """Start it again each time it dies; ends only by cancellation, or by giving up."""
        was_ready = True
        while True:
            code = await self._exit_code()
            self._deaths.record(code, was_ready=was_ready, now=time.monotonic())
            if self._deaths.too_many:
                reason = f"{self._deaths.limit} times within {self._deaths.within_seconds:g} s, last with {exit_text(code)}"
                raise KeepsDying(self.name, reason, tail=tail_of(self.log))
            console.message(f"{self.name} died with {exit_text(code)}; starting it again")
            await asyncio.sleep(self._deaths.pause_seconds)
            self._process = await self._spawn()
            was_ready = await self._is_ready_before_its_end()

    async def _is_ready_before_its_end(self) -> bool:
        while self.is_running:
            if await self.program.ready():
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _forget_keeper(self) -> None:
        if self._keeper is None:
            return
        self._keeper.cancel()
        await asyncio.wait([self._keeper])
        self._keeper = None

    async def _exit_code(self) -> int:
        return await self._process.wait() if self._process else 0

    async def _spawn(self) -> asyncio.subprocess.Process:
        program = self.program
        return await spawn(program.argv, folder=program.folder, log=program.log, env=program.env)

    def _signal(self, number: signal.Signals) -> bool:
        """Send a signal; False where there is no live process to get it."""
        if self._process is None or self._process.returncode is not None:
            return False
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        return True

    def _start_failed(self, reason: str) -> StartFailed:
        return StartFailed(self.name, reason, tail=tail_of(self.log))


class Group:
    """Daemons that live and end together; made by `group()`."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        """Start empty; `tasks` holds the watching of each daemon."""
        self._tasks = tasks
        self._daemons: list[Daemon] = []

    async def start(self, program: Program) -> Daemon:
        """A new daemon of this group, ready to serve."""
        daemon = Daemon(program, tasks=self._tasks)
        await daemon.start()
        self._daemons.append(daemon)
        return daemon

    async def start_all(self, programs: Sequence[Program]) -> list[Daemon]:
        """A new daemon for each program, started side by side; the first that fails ends the others."""
        async with asyncio.TaskGroup() as starts:
            tasks = [starts.create_task(self.start(program)) for program in programs]
        return [task.result() for task in tasks]

    async def close(self) -> None:
        """End all daemons at once; nothing of the group runs afterwards, even if this is cancelled."""
        try:
            async with asyncio.TaskGroup() as stops:
                for daemon in self._daemons:
                    stops.create_task(daemon.stop())
        finally:
            for daemon in self._daemons:
                daemon.kill_now()


@asynccontextmanager
async def group() -> AsyncIterator[Group]:
    """A group whose daemons all end with the block; a daemon that keeps dying ends the block with `KeepsDying`."""
    try:
        async with asyncio.TaskGroup() as tasks:
            members = Group(tasks)
            try:
                yield members
            finally:
                await members.close()
    except BaseExceptionGroup as failures:
        raise _root_of(failures) from None


async def start_on_free_port(daemons: Group, program: Callable[[int], Program]) -> tuple[Daemon, int]:
    """The program started on a free port: on another one when somebody took the first between our look and its start."""
    for _ in range(_PORT_ATTEMPTS - 1):
        port = free_port()
        try:
            return await daemons.start(program(port)), port
        except StartFailed as failure:
            if _PORT_TAKEN not in failure.tail.lower():
                raise
    port = free_port()
    return await daemons.start(program(port)), port


def _root_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one failure to tell the user of: what a daemon or the block raised, without the groups around it."""
    first = failures.exceptions[0]
    return _root_of(first) if isinstance(first, BaseExceptionGroup) else first
