"""Waiting for an event, for several calls, and in a queue for a slot."""

import asyncio

import pytest

from metaloop.common.waiting import WaiterQueue, gathered, is_set_within


async def test_event_that_is_set_in_time_ends_the_wait():
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)

    async with asyncio.timeout(5):
        assert await is_set_within(event, 1000)


async def test_event_that_is_not_set_is_waited_for_until_the_deadline():
    assert not await is_set_within(asyncio.Event(), 0.01)


class Waiters:
    """Tasks in a queue, by name, and the order in which they got their slots."""

    def __init__(self) -> None:
        self.queue = WaiterQueue()
        self.granted: list[str] = []
        self.unused = 0
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, name: str, *, at_front: bool = False) -> None:
        self.tasks[name] = asyncio.create_task(self._wait(name, at_front=at_front))
        await asyncio.sleep(0)

    async def _wait(self, name: str, *, at_front: bool) -> None:
        await self.queue.wait(on_unused=self._count_unused, at_front=at_front)
        self.granted.append(name)

    def _count_unused(self) -> None:
        self.unused += 1


async def test_slots_are_granted_in_the_order_of_the_queue():
    waiters = Waiters()
    for name in "abc":
        await waiters.add(name)
    await waiters.add("front", at_front=True)

    woken = [waiters.queue.wake_next() for _ in range(5)]
    await asyncio.sleep(0)

    assert woken == [True, True, True, True, False]
    assert waiters.granted == ["front", "a", "b", "c"]


async def test_cancelled_waiter_is_skipped():
    waiters = Waiters()
    for name in "ab":
        await waiters.add(name)
    waiters.tasks["a"].cancel()
    await asyncio.sleep(0)

    assert waiters.queue.wake_next()
    await asyncio.sleep(0)

    assert (waiters.granted, waiters.unused) == (["b"], 0)


async def test_slot_of_a_waiter_that_is_cancelled_as_it_wakes_is_reported_unused():
    waiters = Waiters()
    await waiters.add("a")

    waiters.queue.wake_next()
    waiters.tasks["a"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiters.tasks["a"]

    assert (waiters.granted, waiters.unused) == ([], 1)


@pytest.mark.parametrize("delays", [(), (0.0,), (0.02, 0.0, 0.01)])
async def test_results_of_several_calls_come_in_their_order(delays: tuple[float, ...]):
    assert await gathered([asyncio.sleep(delay, index) for index, delay in enumerate(delays)]) == [*range(len(delays))]


async def test_first_of_several_calls_that_raises_cancels_the_others():
    ended = asyncio.Event()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def fail() -> None:
        raise KeyError("a")

    with pytest.raises(KeyError, match="a"):
        await gathered([for_ever(), fail()])

    assert ended.is_set()
