"""Ways for a task to wait: for an event with a deadline, for several calls, and in a queue for a slot."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

T = TypeVar("T")


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait for the event for so many seconds at most; returns whether it is set."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


class WaiterQueue:
    """Tasks that wait for a slot, first in, first out.

    The owner of the queue counts the slots, and grants them with `wake_next`.
    """

    def __init__(self) -> None:
        self._waiters: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait(self, *, on_unused: Callable[[], None], at_front: bool = False) -> None:
        """Return when a slot was granted; with `at_front`, before all others that wait.

        When the task is cancelled just after its slot was granted, `on_unused` is called: the slot must go to somebody
        else.
        """
        waiter = asyncio.get_running_loop().create_future()
        if at_front:
            self._waiters.appendleft(waiter)
        else:
            self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                on_unused()
            raise

    def wake_next(self) -> bool:
        """Grant a slot to the first task that still waits; returns whether there was one."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return True
        return False


async def gathered(calls: Sequence[Coroutine[None, None, T]]) -> list[T]:
    """The results of all calls, which run at once, in their order. The first that raises cancels the others."""
    if len(calls) == 1:
        return [await calls[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in calls]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    return [task.result() for task in tasks]
