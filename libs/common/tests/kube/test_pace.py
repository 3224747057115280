"""How many requests are out at once, as the API server takes them or turns them away."""

import asyncio

from metaloop.common.kube.pace import LEAST, Pace


async def entered(pace: Pace, count: int) -> list[asyncio.Task[None]]:
    """So many requests that want a place, each as far as it gets."""
    tasks = [asyncio.create_task(pace.enter()) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_no_more_than_the_bound_are_out_at_once_and_the_next_follows_in_order():
    pace = Pace(most=2)
    first, second, third, fourth = await entered(pace, 4)

    pace.leave()
    await asyncio.sleep(0)

    assert [task.done() for task in (first, second, third, fourth)] == [True, True, True, False]
    fourth.cancel()


async def test_bound_falls_to_what_the_server_took_of_a_burst():
    pace = Pace(most=64)
    await entered(pace, 64)

    for _ in range(58):
        pace.turned_away()

    assert pace.bound == 6


async def test_bound_falls_from_what_is_out_and_not_from_what_might_be():
    pace = Pace(most=64)
    await entered(pace, 12)

    pace.turned_away()

    assert pace.bound == 11


async def test_bound_never_falls_so_low_that_nothing_goes_on():
    pace = Pace(most=64)
    await entered(pace, 64)

    for _ in range(200):
        pace.turned_away()

    assert pace.bound == LEAST


async def test_bound_rises_slowly_up_to_the_most():
    pace = Pace(most=16)
    await entered(pace, 9)
    pace.turned_away()

    for _ in range(4 * 8):
        pace.taken()
    assert pace.bound == 8
    for _ in range(8):
        pace.taken()
    assert pace.bound == 9
    for _ in range(4 * 16 * 16):
        pace.taken()

    assert pace.bound == 16


async def test_who_was_turned_away_comes_before_those_who_never_were_sent():
    pace = Pace(most=1)
    await pace.enter()
    fresh = asyncio.create_task(pace.enter())
    await asyncio.sleep(0)
    turned_away = asyncio.create_task(pace.enter(again=True))
    await asyncio.sleep(0)

    pace.leave()
    await asyncio.sleep(0)

    assert (turned_away.done(), fresh.done()) == (True, False)
    fresh.cancel()


async def test_request_that_gives_up_waiting_takes_no_place():
    pace = Pace(most=1)
    first, second, third = await entered(pace, 3)
    second.cancel()
    await asyncio.sleep(0)

    pace.leave()
    await asyncio.sleep(0)

    assert (first.done(), second.cancelled(), third.done()) == (True, True, True)


async def test_request_that_gives_up_just_when_it_gets_its_place_passes_it_on():
    pace = Pace(most=1)
    _, second, third = await entered(pace, 3)

    pace.leave()
    second.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert (second.cancelled(), third.done()) == (True, True)
