"""Syncs of large parents compute in a thread, and wait for one another if they are very large."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from fake_hooks import OpenSlot

from metaloop.common.errors import Conflict
from metaloop.common.observation import LARGE_BYTES
from metaloop.common.testing.builders import job_key
from metaloop.reconciler.concurrency import ConcurrencyLimiter
from metaloop.reconciler.core.steps import Resync, Step, Steps
from metaloop.reconciler.drive import drive
from metaloop.reconciler.large_parents import LargeParents, SyncThread
from metaloop.reconciler.ports import Slot

STEP = Resync(1)


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@asynccontextmanager
async def open_slot() -> AsyncIterator[Slot]:
    """There is always one."""
    yield OpenSlot()


def thread_on(executor: ThreadPoolExecutor, *, observed_bytes: int = LARGE_BYTES + 1) -> SyncThread:
    """The thread of a parent; of a large one, unless it says otherwise."""
    return LargeParents(executor).sync_thread(job_key(), OpenSlot(), observed_bytes=observed_bytes)


def threads_of_a_sync() -> Steps[list[int]]:
    """A sync that tells in which thread it computes, before each of two steps and at its end."""
    threads = [threading.get_ident()]
    yield STEP
    threads.append(threading.get_ident())
    yield STEP
    return [*threads, threading.get_ident()]


async def nothing(_: Step) -> None:
    """Each step's result."""


@pytest.mark.parametrize(("observed_bytes", "is_large"), [(0, False), (LARGE_BYTES, False), (LARGE_BYTES + 1, True)])
async def test_sync_of_a_large_parent_computes_in_the_thread(*, executor: ThreadPoolExecutor, observed_bytes: int, is_large: bool):
    threads = await drive(threads_of_a_sync(), nothing, thread=thread_on(executor, observed_bytes=observed_bytes))

    assert [thread == threading.get_ident() for thread in threads] == [not is_large] * 3


async def test_sync_computes_in_the_thread_from_its_first_large_answer_on(executor: ThreadPoolExecutor):
    results = [[b"x" * (LARGE_BYTES // 4), b"x" * (LARGE_BYTES // 2)], None]

    async def answered(_: Step) -> object:
        return results.pop(0)

    threads = await drive(threads_of_a_sync(), answered, thread=thread_on(executor, observed_bytes=0))

    assert [thread == threading.get_ident() for thread in threads] == [True, False, False]


async def test_errors_reach_a_sync_in_the_thread_and_leave_it(executor: ThreadPoolExecutor):
    def failing() -> Steps[None]:
        with pytest.raises(Conflict, match="first"):
            yield STEP
        raise Conflict("second")

    async def fail(_: Step) -> None:
        raise Conflict("first")

    with pytest.raises(Conflict, match="second"):
        await drive(failing(), fail, thread=thread_on(executor))


async def test_event_loop_goes_on_while_a_sync_computes(executor: ThreadPoolExecutor):
    may_end = threading.Event()

    def computing() -> Steps[str]:
        assert may_end.wait(30)
        return "done"
        yield STEP

    async with asyncio.TaskGroup() as tasks:
        driving = tasks.create_task(drive(computing(), nothing, thread=thread_on(executor)))
        await asyncio.sleep(0.01)
        may_end.set()

    assert driving.result() == "done"


async def test_cancelled_sync_ends_when_its_computation_has(executor: ThreadPoolExecutor):
    begun, may_end, ended = threading.Event(), threading.Event(), list[str]()

    def computing() -> Steps[None]:
        try:
            begun.set()
            assert may_end.wait(30)
            yield STEP
        finally:
            ended.append("closed")

    driving = asyncio.create_task(drive(computing(), nothing, thread=thread_on(executor)))
    await asyncio.to_thread(begun.wait, 30)
    driving.cancel()
    await asyncio.sleep(0.01)
    before = list(ended)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await driving

    assert (before, ended) == ([], ["closed"])


# -- room for large parents --------------------------------------------------------------------------------------------

SIZE = 10 * LARGE_BYTES


class Rooms:
    """The budget is for two parents of `SIZE`. It records which parents were synced, in order."""

    def __init__(self, executor: ThreadPoolExecutor, *, slots: Callable[[], AbstractAsyncContextManager[Slot]] = open_slot) -> None:
        self.parents = LargeParents(executor, budget_bytes=2 * SIZE)
        self.claimed: list[str] = []
        self.computed: list[str] = []
        self._slots = slots
        self._may_leave: dict[str, asyncio.Event] = {}

    async def sync(self, name: str, *, size: int = SIZE) -> None:
        """Sync a parent that turns out to be so large, and end it at once."""
        self.leave(name)
        await self.stay(name, size=size)

    async def stay(self, name: str, *, size: int = SIZE) -> None:
        """Sync a parent that turns out to be so large, and go on until `leave`."""
        async with self._slots() as slot, self.parents.room_for(job_key(name), slot):
            self.claimed.append(name)
            thread = self.parents.sync_thread(job_key(name), slot, observed_bytes=0)
            if thread.is_for([b"x" * (size // 2)]):
                await thread.run(lambda: self.computed.append(name))
            await self._gate(name).wait()

    def leave(self, *names: str) -> None:
        for name in names:
            self._gate(name).set()

    def forget(self) -> None:
        """Record from now on only."""
        self.claimed.clear()
        self.computed.clear()
        self._may_leave.clear()

    def _gate(self, name: str) -> asyncio.Event:
        return self._may_leave.setdefault(name, asyncio.Event())


@pytest.fixture
def rooms(executor: ThreadPoolExecutor) -> Rooms:
    return Rooms(executor)


async def until(lines: list[str], *names: str) -> None:
    """Wait until exactly these were recorded, and see that nothing follows in the next moments."""
    async with asyncio.timeout(30):
        while lines != [*names]:  # noqa: ASYNC110 - a thread can't set an event
            await asyncio.sleep(0.001)
    for _ in range(10):
        await asyncio.sleep(0)
    assert lines == [*names]


async def test_sync_that_turns_out_to_be_large_computes_when_others_leave_room(rooms: Rooms):
    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b", "c"):
            tasks.create_task(rooms.stay(name))
        await until(rooms.computed, "a", "b")
        rooms.leave("a")
        await until(rooms.computed, "a", "b", "c")
        rooms.leave("b", "c")

    assert rooms.claimed == ["a", "b", "c"]


async def test_parent_that_was_large_in_its_last_sync_is_not_claimed_before_there_is_room(rooms: Rooms):
    for name in ("a", "b", "c"):
        await rooms.sync(name)
    rooms.forget()

    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b", "c"):
            tasks.create_task(rooms.stay(name))
        await until(rooms.claimed, "a", "b")
        rooms.leave("a")
        await until(rooms.claimed, "a", "b", "c")
        rooms.leave("b", "c")


async def test_parent_that_is_larger_than_the_budget_is_synced_alone(rooms: Rooms):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(rooms.stay("large"))
        tasks.create_task(rooms.stay("huge", size=5 * SIZE))
        await until(rooms.computed, "large")
        rooms.leave("large")
        await until(rooms.computed, "large", "huge")
        rooms.leave("huge")


async def test_small_parents_wait_for_nobody(rooms: Rooms):
    await rooms.sync("was large")
    await rooms.sync("was large", size=0)
    rooms.forget()

    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b"):
            tasks.create_task(rooms.stay(name))
        for name in ("unknown", "was large"):
            tasks.create_task(rooms.stay(name, size=LARGE_BYTES))
        await until(rooms.claimed, "a", "b", "unknown", "was large")
        rooms.leave("a", "b", "unknown", "was large")


async def test_cancelled_wait_takes_no_room(rooms: Rooms):
    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b"):
            tasks.create_task(rooms.stay(name))
        await until(rooms.computed, "a", "b")
        waiting = tasks.create_task(rooms.stay("c"))
        await until(rooms.claimed, "a", "b", "c")
        waiting.cancel()
        rooms.leave("a")
        tasks.create_task(rooms.stay("d"))
        await until(rooms.computed, "a", "b", "d")
        rooms.leave("b", "d")


async def test_slot_is_lent_while_a_large_parent_waits(executor: ThreadPoolExecutor):
    """Three slots: two large parents stay in theirs, and the third one lends its slot to a small one."""
    limiter = ConcurrencyLimiter(active=3, total=8, on_room=lambda: None)
    rooms = Rooms(executor, slots=limiter.slot)

    async with asyncio.TaskGroup() as tasks:
        for name in ("a", "b", "c"):
            tasks.create_task(rooms.stay(name))
        await until(rooms.computed, "a", "b")
        tasks.create_task(rooms.stay("small", size=0))
        await until(rooms.claimed, "a", "b", "c", "small")
        rooms.leave("a", "b", "c", "small")
