"""Whether this worker may still act for a parent."""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, TypeAlias, TypeVar

from metaloop.common.errors import LeaseLost

Clock: TypeAlias = Callable[[], float]
T = TypeVar("T")

_MARGIN: Final = 0.05
"""The share of a lease that is kept back where another process is told how long it lasts: to tell it takes time."""


class LeaseGuard:
    """Asked before each request: the last moment to notice that another worker may have the parent by now.

    The end is counted from before the claim, or the last renewal that the watcher confirmed, was *sent*; the watcher
    counts from when it arrived. So for this worker the lease is over before anybody else can get one, whatever stood
    still in between. Each renewal lasts for as long as the watcher granted, whatever this worker is set to.
    """

    def __init__(self, lease: str, *, asked_at: float, seconds: float, clock: Clock) -> None:
        """`clock` counts the time that the machine sleeps, too: a lease ends meanwhile."""
        self.lease = lease
        self.seconds = seconds
        """For how long each confirmation of the lease holds."""
        self._ends = asked_at + seconds
        self._clock = clock
        self._limit: asyncio.Timeout | None = None
        """Cancels the work that goes on under the lease. None while there is none."""
        self._listeners: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None
        """Looks at the end of the lease while work goes on."""

    @property
    def is_valid(self) -> bool:
        """Whether the lease is ours now."""
        return self._clock() < self._ends

    @property
    def lent_seconds(self) -> float:
        """How long a process that is told so now may act on our behalf: until shortly before the lease ends."""
        return self._ends - self._clock() - _MARGIN * self.seconds

    def on_extension(self, listener: Callable[[], None]) -> "Listening":
        """Have `listener` called whenever the lease was extended, for the length of the block."""
        return Listening(listener, self._listeners)

    def check(self) -> None:
        """Return where the lease is ours now. Raises LeaseLost where it may not be."""
        if not self.is_valid:
            raise LeaseLost(f"lease {self.lease} ran out")

    async def bound(self, work: Awaitable[T]) -> T:
        """The result of `work`, which is cancelled when the lease ends. Raises LeaseLost then."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit = limit
                self._end_work_in_time()
                return await work
        except TimeoutError as error:
            if limit.expired():
                raise LeaseLost(f"lease {self.lease} ran out") from error
            raise
        finally:
            self._limit = None
            if self._timer is not None:
                self._timer.cancel()

    def extend(self, *, asked_at: float) -> None:
        """The watcher confirmed the lease in answer to this renewal; a lease that was over stays over."""
        if self.is_valid:
            self._ends = asked_at + self.seconds
            for listener in tuple(self._listeners):
                listener()

    def lose(self) -> None:
        """The watcher doesn't know the lease any more, or it ended: what goes on under it ends, too."""
        self._ends = float("-inf")
        self._end_work_in_time()

    def _end_work_in_time(self) -> None:
        """End the work if the lease is over, or look again when it will be: it may have been renewed by then."""
        if self._limit is None or self._limit.expired():
            return
        loop, left_seconds = asyncio.get_running_loop(), self._ends - self._clock()
        if left_seconds > 0:
            self._timer = loop.call_later(left_seconds, self._end_work_in_time)
        else:
            self._limit.reschedule(loop.time())


class Listening:
    """A block in which a listener is one of several."""

    __slots__ = ("_listener", "_listeners")

    def __init__(self, listener: Callable[[], None], listeners: list[Callable[[], None]]) -> None:
        self._listener = listener
        self._listeners = listeners

    def __enter__(self) -> None:
        self._listeners.append(self._listener)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._listeners.remove(self._listener)
