"""What tasks wait for: an event, but not for ever; a place that others give."""

import asyncio
from collections import deque
from collections.abc import Callable


async def is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether the event is set, at once or before so many seconds are over."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


class Line:
    """Those who wait for a place, first come, first served. How many places there are is for those to know who give them."""

    def __init__(self) -> None:
        """Nobody waits."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    async def place(self, *, returned: Callable[[], None], is_first: bool = False) -> None:
        """Return when a place was given, to who `is_first` before all others. One that came too late, since we were cancelled, is `returned`."""
        place = asyncio.get_running_loop().create_future()
        if is_first:
            self._waiting.appendleft(place)
        else:
            self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                returned()
            raise

    def give(self) -> bool:
        """Give a place to the next who still waits for one; whether there was anybody."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return True
        return False
