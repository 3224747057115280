"""The watcher's part of a map controller, measured by itself: it does what the watcher does."""

import asyncio

from bench.map_process import LoopTurns, MappingHalf, main
from metaloop.watcher.core.rules.parts import Parts


async def test_every_input_is_marked_once_when_its_parent_changes() -> None:
    half = MappingHalf()
    half.start()
    half.see_parent(text="first")
    for number in range(3):
        half.see_input(number)
        half.see_output(number)
    half.run_all()
    before = half.routing.queue.counts.marks

    half.see_parent(text="second")

    assert half.routing.queue.counts.marks - before == 4
    assert half.routing.queue.waiting == 4


async def test_inputs_and_outputs_are_seen_as_pairs() -> None:
    half = MappingHalf()
    half.start()
    half.see_parent(text="first")
    for number in range(3):
        half.see_input(number)
    for number in range(2):
        half.see_output(number)

    [parts] = [each for instance in half.routing.running for each in instance.rules if isinstance(each, Parts)]
    [of_parent] = parts.counts.values()
    assert (len(of_parent.inputs), sorted(map(len, of_parent.places.values()))) == (3, [1, 1])


async def test_longest_turn_of_the_loop_is_noticed() -> None:
    async with LoopTurns() as turns:
        for steps in (10, 400_000):
            sum(range(steps))
            await asyncio.sleep(0)

    assert turns.longest_seconds >= 0.001


async def test_all_figures_are_measured() -> None:
    measured = await main(50)

    assert measured["objectBytes"] > 500
    assert all(measured[each] > 0 for each in ("markSeconds", "longestTurn", "selectSeconds", "longestSelectTurn", "longestEndTurn"))
