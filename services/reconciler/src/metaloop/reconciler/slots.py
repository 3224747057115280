"""How many jobs a worker runs: a few that use the CPU and the API server, many that wait for a webhook."""

import asyncio
from types import TracebackType
from typing import Self


class Waiting:
    """A stretch of a job in which it only waits for somebody else: its slot is another's meanwhile."""

    def __init__(self, slot: "Slot") -> None:
        self._slot = slot

    async def __aenter__(self) -> None:
        self._slot.lend()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._slot.reclaim()


class Slot:
    """One job's right to work."""

    def __init__(self, slots: "Slots") -> None:
        self._slots = slots
        self._is_held = False
        """Whether it counts as working, and holds one of the active places."""

    def waiting(self) -> Waiting:
        """`async with slot.waiting(): …` around a call that takes long and costs us nothing."""
        return Waiting(self)

    def lend(self) -> None:
        """Leave the place to another job."""
        self._is_held = False
        self._slots.waiting += 1
        self._slots.places.release()
        self._slots.on_room()

    async def reclaim(self) -> None:
        """Have a place again; jobs that come back from waiting queue up with new ones."""
        self._slots.waiting -= 1
        await self._slots.places.acquire()
        self._is_held = True

    async def __aenter__(self) -> Self:
        await self._slots.places.acquire()
        self._is_held = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._is_held:
            self._is_held = False
            self._slots.places.release()


class Slots:
    """The places of one worker, and how many jobs it may have in all."""

    def __init__(self, *, active: int, total: int) -> None:
        self._active = active
        self._total = total
        self.places = asyncio.Semaphore(active)
        self.waiting = 0
        """Jobs that lent their place."""
        self.on_room = _nobody_cares
        """Called when there may be room for another job."""

    def new(self) -> Slot:
        """A slot for a job, to be entered before it works."""
        return Slot(self)

    def room(self, jobs: int) -> int:
        """How many jobs more than these `jobs` may be taken on."""
        return max(0, min(self._active - (jobs - self.waiting), self._total - jobs))


def _nobody_cares() -> None:
    """The listener of slots that nobody fills yet."""
