"""What large parents use together: a thread to compute in, and a budget of memory.

Between its steps, a sync only computes. With ten thousand children, that takes half a second, in which nothing else
would happen on the event loop. While a thread computes, the interpreter gives the event loop its turn within
`SWITCH_SECONDS`. There is one thread for all large parents: they wait for one another, and others don't.

A parent of 200 MiB takes twice as much while it is synced. So a job waits until what large parents hold leaves room
for it: before it claims a parent that was large in its last sync in this process, or else before it computes with what
turned out to be large.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import copy_context
from types import TracebackType
from typing import Final, TypeVar

from metaloop.common.job import JobKey
from metaloop.common.observation import LARGE_BYTES
from metaloop.reconciler.ports import Slot

SWITCH_SECONDS: Final = 0.001
"""How long a thread may compute while the event loop has something to do."""
BUDGET_BYTES: Final = 128 * 2**20
"""What large parents may have on the wire at once, all together. A parent that is larger is synced alone."""
_REMEMBERED: Final = 10_000
"""How many parents are known to be large. When there are more, all are forgotten."""

T = TypeVar("T")


class LargeParents:
    """The thread and the budget of one process."""

    def __init__(self, executor: Executor, *, budget_bytes: int = BUDGET_BYTES) -> None:
        self._executor = executor
        self._budget_bytes = budget_bytes
        self._sizes: dict[JobKey, int] = {}
        """Bytes on the wire, of those parents that are large."""
        self._held: dict[JobKey, int] = {}
        """The same of those that are synced now."""
        self._threads: dict[JobKey, SyncThread] = {}
        """Of the syncs that go on now."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    def sync_thread(self, key: JobKey, slot: Slot, *, observed_bytes: int) -> "SyncThread":
        """The thread, for the sync of one parent within its `room_for`."""
        thread = SyncThread(self._executor, observed_bytes=observed_bytes, enter=lambda size: self._enter(key, slot, size))
        self._threads[key] = thread
        return thread

    def room_for(self, key: JobKey, slot: Slot) -> "Room":
        """A block in which a parent may be synced. A large one may wait for others, and lends its slot meanwhile."""
        return Room(self, key, slot)

    async def enter_if_large(self, key: JobKey, slot: Slot) -> None:
        """Hold room for a parent that was large in its last sync. `leave` must follow, also where this fails."""
        if size := self._sizes.pop(key, 0):
            await self._enter(key, slot, size)

    async def _enter(self, key: JobKey, slot: Slot, size: int) -> None:
        """Hold room for a parent until it leaves. One that holds room already never waits again."""
        while key not in self._held and self._held and sum(self._held.values()) + size > self._budget_bytes:
            async with slot.waiting():
                await self._change()
        self._held[key] = max(size, self._held.get(key, 0))

    def leave(self, key: JobKey) -> None:
        """The parent is not synced any more."""
        thread, size = self._threads.pop(key, None), self._held.pop(key, 0)
        if thread is not None:
            size = thread.bytes if thread.is_large else 0
        if len(self._sizes) >= _REMEMBERED:
            self._sizes.clear()
        if size:
            self._sizes[key] = size
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)

    async def _change(self) -> None:
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(changed)
        await changed


class Room:
    """A block in which one parent may be synced."""

    __slots__ = ("_key", "_large", "_slot")

    def __init__(self, large: LargeParents, key: JobKey, slot: Slot) -> None:
        self._large = large
        self._key = key
        self._slot = slot

    async def __aenter__(self) -> None:
        has_entered = False
        try:
            await self._large.enter_if_large(self._key, self._slot)
            has_entered = True
        finally:
            if not has_entered:
                self._large.leave(self._key)

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._large.leave(self._key)


class SyncThread:
    """The thread, as one sync uses it. `enter` waits for room for so many bytes on the wire."""

    def __init__(self, executor: Executor, *, observed_bytes: int, enter: Callable[[int], Awaitable[None]]) -> None:
        self._executor = executor
        self._enter = enter
        self.bytes = observed_bytes
        """How large the parent is, as far as its sync has come."""

    @property
    def is_large(self) -> bool:
        """Whether the sync computes in the thread."""
        return self.bytes > LARGE_BYTES

    def is_for(self, result: object) -> bool:
        """Whether the sync computes there after a step with this result: its observation or an answer was large."""
        if isinstance(result, list):
            # An applied child records what was applied, which is as large. It comes back with the next observation.
            self.bytes = max(self.bytes, 2 * _bytes_of(result))
        return self.bytes > LARGE_BYTES

    async def run(self, compute: Callable[[], T]) -> T:
        """What `compute` returns. If this is cancelled, it is cancelled once `compute` has ended."""
        await self._enter(self.bytes)
        computing = asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, compute)
        try:
            return await asyncio.shield(computing)
        except asyncio.CancelledError:
            while not computing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({computing})
            raise


def _bytes_of(answers: Sequence[object]) -> int:
    return sum(len(each) for each in answers if isinstance(each, bytes))
