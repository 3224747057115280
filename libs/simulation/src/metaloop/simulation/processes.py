"""Simulated processes: each runs a service as it is assembled in production, and may crash, stall or be stopped."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, TypeAlias

from metaloop.common.machine import running_on
from metaloop.common.service import Service
from metaloop.simulation.history import History
from metaloop.simulation.loop import VirtualLoop, owner
from metaloop.simulation.machines import SimulatedMachine
from metaloop.simulation.network import Port

Assemble: TypeAlias = Callable[[Service, Port], AbstractAsyncContextManager[object]]
"""Connects a service through a port and assembles it, for the length of the block."""

_FIRST_RESTART_SECONDS: Final = 0.5
_LONGEST_RESTART_SECONDS: Final = 10.0
_LASTING_SECONDS: Final = 30.0


class Process:
    """A process that is started again when it ends, later each time."""

    def __init__(self, name: str, assemble: Assemble, *, seed: str, history: History) -> None:
        self.name = name
        self.port = Port(name, is_alive=False)
        self.service: Service | None = None
        """The running service, once it is assembled."""
        self.machine = SimulatedMachine(name, seed=seed)
        self.exits = 0
        """How often it ended by itself."""
        self.stalled_until = 0.0
        """When it goes on, or went on, after it was stalled last."""
        self._assemble = assemble
        self._history = history
        self._life: asyncio.Task[None] | None = None
        self._restart_seconds = _FIRST_RESTART_SECONDS
        self._started_at = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._wanted = False

    @property
    def is_running(self) -> bool:
        """Whether the service is assembled and its process alive."""
        return self.port.is_alive and self.service is not None and self.service.started

    def start(self) -> None:
        """Start it, unless it runs."""
        self._wanted = True
        if not self.port.is_alive:
            self._begin()

    def crash(self) -> None:
        """End it at once: nothing that it still does reaches anybody. It is started again after a while."""
        if not self.port.is_alive:
            return
        self._history.note(self.name, "CRASH")
        self._end()
        self._restart()

    def discard(self) -> None:
        """End it for good, at the end of a run."""
        self._wanted = False
        self._end()

    async def stop(self) -> None:
        """Stop it as a signal does, and wait until it ended. It is not started again."""
        self._wanted = False
        if self.service is None or self._life is None:
            self._end()
            return
        self._history.note(self.name, "stop")
        self.service.stopping.set()
        await asyncio.wait({self._life})

    def stall(self, seconds: float) -> None:
        """Run nothing of it for so long."""
        self._history.note(self.name, f"STALL for {seconds:.1f} s")
        self.stalled_until = max(self.stalled_until, _loop().time() + seconds)
        _loop().stall(self.name)
        _loop().call_later(seconds, self.resume)

    def stall_after(self, steps: int, seconds: float) -> None:
        """Stall it once it has run so many more callbacks."""
        _loop().after_steps(self.name, steps, lambda: self.stall(seconds))

    def crash_after(self, steps: int) -> None:
        """Crash it once it has run so many more callbacks."""
        _loop().after_steps(self.name, steps, self.crash)

    def resume(self) -> None:
        """Have it go on, if it is stalled."""
        _loop().forget_steps(self.name)
        _loop().resume(self.name)

    def spawn(self, run: Callable[[], "asyncio.Task[None]"]) -> None:
        """Start a task of this process, which ends with it."""
        if self.service is None:
            return
        with self._inside():
            task = run()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @contextmanager
    def _inside(self) -> Iterator[None]:
        """What is started in the block belongs to this process, and runs on its machine."""
        token = owner.set(self.name)
        try:
            with running_on(self.machine):
                yield
        finally:
            owner.reset(token)

    def _begin(self) -> None:
        self.port = Port(self.name, number=self.port.number + 1)
        self._started_at = asyncio.get_running_loop().time()
        self._history.note(self.name, "start")
        with self._inside():
            self._life = asyncio.get_running_loop().create_task(self._live(self.port), name=self.name)
        self._life.add_done_callback(self._ended)

    async def _live(self, port: Port) -> None:
        service = Service(self.name)
        async with self._assemble(service, port):
            if port is self.port:
                self.service = service
            await service.live()

    def _ended(self, life: asyncio.Task[None]) -> None:
        if life is not self._life:
            return
        problem = None if life.cancelled() else life.exception()
        self._end()
        if not self._wanted:
            return
        self.exits += 1
        self._history.note(self.name, f"EXIT: {_described(problem)}")
        self._restart()

    def _end(self) -> None:
        self.port.die()
        self.service = None
        life, self._life = self._life, None
        if life is not None and not life.done():
            life.add_done_callback(_seen)
            life.cancel()
        for task in tuple(self._tasks):
            task.cancel()

    def _restart(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._started_at > _LASTING_SECONDS:
            self._restart_seconds = _FIRST_RESTART_SECONDS
        loop.call_later(self._restart_seconds, self._start_if_wanted)
        self._restart_seconds = min(2 * self._restart_seconds, _LONGEST_RESTART_SECONDS)

    def _start_if_wanted(self) -> None:
        if self._wanted and not self.port.is_alive:
            self._begin()


def _loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)  # noqa: S101 - processes run on virtual time
    return loop


def _described(problem: BaseException | None) -> str:
    if isinstance(problem, BaseExceptionGroup):
        return "; ".join(_described(each) for each in problem.exceptions)
    return f"{type(problem).__name__}: {problem}" if problem is not None else "without a failure"


def _seen(life: asyncio.Task[None]) -> None:
    """Take the failure of a process that crashed: nobody needs what it did after that."""
    if not life.cancelled():
        life.exception()
