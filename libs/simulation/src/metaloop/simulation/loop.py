"""An event loop on virtual time: when nothing is ready, its clock advances to the next timer, without waiting."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, Final

START_SECONDS: Final = 1000.0

owner: ContextVar[str] = ContextVar("owner", default="")
"""The simulated process that a callback belongs to; empty for the models and the story."""


_OUTSIDE: Final = Context()


class NothingLeft(RuntimeError):
    """No callback is ready and no timer is set: the run would wait for ever."""


class _Task(asyncio.Task[Any]):
    """A task whose hash follows from the order of creation.

    asyncio keeps tasks in sets and cancels them in the order of the set. By addresses, that order would differ from run
    to run.
    """

    def __hash__(self) -> int:
        return self.number

    number: int = 0


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop without I/O. Callbacks of a stalled process wait until it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self._now = START_SECONDS
        self._ready: deque[asyncio.Handle]
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        """A heap of the timers by when they are due; those of one moment in the order in which they were made."""
        self._timers_made = 0
        self._stalled: dict[str, list[asyncio.Handle]] = {}
        self._countdowns: dict[str, tuple[int, Callable[[], object]]] = {}
        """For a process, after how many more callbacks what happens."""
        self._tasks_made = 0
        self.set_task_factory(self._make_task)  # pyright: ignore[reportArgumentType]

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._now

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None) -> asyncio.TimerHandle:
        """Have `callback` called at a time of this loop. The base class compares timers in Python, which costs more."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        self._timers_made += 1
        heapq.heappush(self._timers, (when, self._timers_made, timer))
        return timer

    def stall(self, process: str) -> None:
        """Run nothing of a process until `resume`, as if it were stopped by a signal."""
        self._stalled.setdefault(process, [])

    def resume(self, process: str) -> None:
        """Have a process go on with all that became ready meanwhile, timers first, as uvloop does."""
        held = self._stalled.pop(process, ())
        self._ready.extend(sorted(held, key=lambda handle: not isinstance(handle, asyncio.TimerHandle)))

    def after_steps(self, process: str, steps: int, call: Callable[[], object]) -> None:
        """Have `call` happen once a process has run so many more callbacks: between any two of its awaits."""
        self._countdowns[process] = (steps, call)

    def forget_steps(self, process: str) -> None:
        """Forget what `after_steps` was to happen to a process."""
        self._countdowns.pop(process, None)

    def _make_task(self, loop: asyncio.AbstractEventLoop, coro: Coroutine[Any, Any, Any], context: Context | None = None) -> _Task:
        task = _Task(coro, loop=loop, context=context)
        self._tasks_made += 1
        task.number = self._tasks_made
        return task

    def _run_once(self) -> None:
        ready, timers = self._ready, self._timers
        if not ready and not self._stopping:
            self._advance()
        while timers and timers[0][0] <= self._now:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                self._run(handle)

    def _run(self, handle: asyncio.Handle) -> None:
        if self._countdowns:
            self._count(handle._context.get(owner, ""))  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue]
        if self._stalled:
            held = self._stalled.get(handle._context.get(owner, ""))  # noqa: SLF001 # pyright: ignore[reportAttributeAccessIssue]
            if held is not None:
                held.append(handle)
                return
        handle._run()  # noqa: SLF001

    def _count(self, process: str) -> None:
        countdown = self._countdowns.get(process)
        if countdown is None:
            return
        steps, call = countdown
        if steps > 1:
            self._countdowns[process] = (steps - 1, call)
            return
        del self._countdowns[process]
        _OUTSIDE.run(call)

    def _advance(self) -> None:
        """Let the time pass until the next timer."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heapq.heappop(timers)
        if not timers:
            raise NothingLeft("no callback is ready and no timer is set")
        self._now = max(self._now, timers[0][0])

    _stopping: bool

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is dropped when it is due."""

    def _write_to_self(self) -> None:
        """Do nothing: no other thread wakes this loop."""

    def _process_events(self, event_list: list[object]) -> None:
        """Do nothing: there is no I/O."""
