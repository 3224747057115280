"""Waiting for an event, and in a line."""

import asyncio

import pytest

from metaloop.common.waiting import Line, is_set_within


async def test_an_event_that_is_set_in_time_is_not_waited_for_longer():
    event = asyncio.Event()
    asyncio.get_running_loop().call_soon(event.set)

    async with asyncio.timeout(5):
        assert await is_set_within(event, 1000)


async def test_an_event_that_is_not_set_is_waited_for_so_long():
    assert not await is_set_within(asyncio.Event(), 0.01)


class Waiting:
    """Tasks in a line, by name, and in which order they have a place."""

    def __init__(self) -> None:
        self.line = Line()
        self.placed: list[str] = []
        self.returned = 0
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def comes(self, name: str, *, is_first: bool = False) -> None:
        self.tasks[name] = asyncio.create_task(self._waits(name, is_first=is_first))
        await asyncio.sleep(0)

    async def _waits(self, name: str, *, is_first: bool) -> None:
        await self.line.place(returned=self._take_back, is_first=is_first)
        self.placed.append(name)

    def _take_back(self) -> None:
        self.returned += 1


async def test_places_are_given_in_the_order_in_which_they_were_waited_for():
    waiting = Waiting()
    for name in "abc":
        await waiting.comes(name)
    await waiting.comes("first", is_first=True)

    given = [waiting.line.give() for _ in range(5)]
    await asyncio.sleep(0)

    assert given == [True, True, True, True, False]
    assert waiting.placed == ["first", "a", "b", "c"]


async def test_who_waits_no_more_is_passed_over():
    waiting = Waiting()
    for name in "ab":
        await waiting.comes(name)
    waiting.tasks["a"].cancel()
    await asyncio.sleep(0)

    assert waiting.line.give()
    await asyncio.sleep(0)

    assert (waiting.placed, waiting.returned) == (["b"], 0)


async def test_a_place_that_was_given_to_who_is_cancelled_in_the_same_moment_is_returned():
    waiting = Waiting()
    await waiting.comes("a")

    waiting.line.give()
    waiting.tasks["a"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting.tasks["a"]

    assert (waiting.placed, waiting.returned) == ([], 1)
