"""Two ways for a task to wait: for an event with a deadline, and in a queue for a slot that others hand out."""

import asyncio
from collections import deque
from collections.abc import Callable


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
