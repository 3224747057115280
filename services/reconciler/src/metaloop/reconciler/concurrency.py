"""The concurrency limiter: few jobs use the CPU and the API server at once, and many more wait for a webhook."""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Waiting:
    """A stretch of a job in which it only waits for somebody else. Meanwhile another job has its slot."""

    def __init__(self, slot: "Slot") -> None:
        self._slot = slot

    async def __aenter__(self) -> None:
        self._slot.lend()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._slot.reclaim()


class Slot:
    """One job's right to be active. Enter it before the job works."""

    def __init__(self, limiter: "ConcurrencyLimiter") -> None:
        self._limiter = limiter
        self._is_active = False
        """Whether the job counts as active, and so holds one of the limiter's permits."""

    def waiting(self) -> Waiting:
        """`async with slot.waiting(): …` around a call that takes long and costs this process nothing."""
        return Waiting(self)

    def lend(self) -> None:
        """Let another job be active."""
        self._is_active = False
        self._limiter.waiting += 1
        self._limiter.permits.release()
        self._limiter.on_room()

    async def reclaim(self) -> None:
        """Be active again. Jobs that come back from waiting queue up with new ones."""
        self._limiter.waiting -= 1
        await self._limiter.permits.acquire()
        self._is_active = True

    async def __aenter__(self) -> Self:
        await self._limiter.permits.acquire()
        self._is_active = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_active:
            self._is_active = False
            self._limiter.permits.release()


class ConcurrencyLimiter:
    """Lets `active` jobs of one worker be active at once, and lets it have `total` jobs in all.

    `on_room` is called when there may be room for another job.
    """

    def __init__(self, *, active: int, total: int, on_room: Callable[[], None]) -> None:
        self.permits = asyncio.Semaphore(active)
        self.on_room = on_room
        self.waiting = 0
        """Jobs that lent their slot."""
        self._active = active
        self._total = total

    def slot(self) -> Slot:
        """A slot for a job."""
        return Slot(self)

    def room(self, jobs: int) -> int:
        """How many more jobs may be taken on beside these `jobs`."""
        return max(0, min(self._active - (jobs - self.waiting), self._total - jobs))
