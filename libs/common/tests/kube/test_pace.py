"""How many requests are out at once, as the API server takes them or turns them away."""

import asyncio

from metaloop.common.kube.pace import LEAST, Pace
from metaloop.common.testing.clock import FakeClock


async def entered(pace: Pace, count: int) -> list[asyncio.Task[None]]:
    """So many requests that want a place, each as far as it gets."""
    tasks = [asyncio.create_task(pace.enter()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_no_more_than_the_bound_are_out_at_once_and_the_next_follows_in_order():
    pace = Pace(most=2)
    first, second, third, fourth = await entered(pace, 4)

    pace.leave(was_taken=True)
    await asyncio.sleep(0)

    assert [task.done() for task in (first, second, third, fourth)] == [True, True, True, False]
    fourth.cancel()


async def test_bound_falls_from_what_was_out_when_one_is_turned_away():
    clock = FakeClock()
    pace = Pace(most=64, clock=clock)
    await entered(pace, 12)

    pace.leave(was_taken=False)

    assert pace.bound == 8


async def test_requests_turned_away_together_tell_it_once():
    clock = FakeClock()
    pace = Pace(most=64, clock=clock)
    await entered(pace, 12)

    for _ in range(12):
        pace.leave(was_taken=False)

    assert pace.bound == 8


async def test_bound_never_falls_so_low_that_nothing_goes_on():
    clock = FakeClock()
    pace = Pace(most=64, clock=clock)
    for _ in range(20):
        await pace.enter()
        clock.advance(1.0)
        pace.leave(was_taken=False)

    assert pace.bound == LEAST


async def test_bound_rises_by_about_one_for_each_round_that_is_taken_up_to_the_most():
    clock = FakeClock()
    pace = Pace(most=16, clock=clock)
    await entered(pace, 12)
    pace.leave(was_taken=False)
    for _ in range(11):
        pace.leave(was_taken=True)
    assert pace.bound == 9

    for _ in range(300):
        await pace.enter()
        pace.leave(was_taken=True)

    assert pace.bound == 16


async def test_request_that_gives_up_waiting_takes_no_place():
    pace = Pace(most=1)
    first, second, third = await entered(pace, 3)
    second.cancel()
    await asyncio.sleep(0)

    pace.leave(was_taken=True)
    await asyncio.sleep(0)

    assert (first.done(), second.cancelled(), third.done()) == (True, True, True)


async def test_request_that_gives_up_just_when_it_gets_its_place_passes_it_on():
    pace = Pace(most=1)
    _, second, third = await entered(pace, 3)

    pace.leave(was_taken=True)
    second.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert (second.cancelled(), third.done()) == (True, True)
