"""Many tasks at once, a few at a time."""

import asyncio

from metaloop.hookgateway.turns import Turns


class Rounds:
    """Counts the event loop's rounds."""

    def __init__(self) -> None:
        self.number = 0
        self._count()

    def _count(self) -> None:
        self.number += 1
        self._next = asyncio.get_running_loop().call_soon(self._count)

    def stop(self) -> None:
        self._next.cancel()


async def rounds_of(tasks: int, *, in_a_round: int) -> list[tuple[int, int]]:
    """Of each task that got its turn, in that order: the round, and which task it is."""
    turns, rounds = Turns(in_a_round), Rounds()
    seen: list[tuple[int, int]] = []

    async def one(number: int) -> None:
        await turns.mine()
        seen.append((rounds.number, number))

    async with asyncio.TaskGroup() as group:
        for number in range(tasks):
            group.create_task(one(number))
    rounds.stop()
    return seen


async def test_a_few_go_on_in_the_same_round():
    seen = await rounds_of(8, in_a_round=8)

    assert len({number for number, _ in seen}) == 1


async def test_many_go_on_a_few_a_round_in_their_order():
    seen = await rounds_of(50, in_a_round=8)

    a_round = [number for number, _ in seen]
    assert [task for _, task in seen] == [*range(50)]
    assert max(a_round.count(number) for number in a_round) == 8
    assert len(set(a_round)) == 7


async def test_turn_of_a_task_that_was_cancelled_is_anothers():
    turns = Turns(1)
    tasks = [asyncio.create_task(turns.mine()) for _ in range(4)]
    await asyncio.sleep(0)

    tasks[1].cancel()

    async with asyncio.timeout(5):
        await asyncio.gather(tasks[0], *tasks[2:])


async def test_turns_are_there_again_after_a_crowd():
    turns = Turns(2)
    await asyncio.gather(*(turns.mine() for _ in range(9)))
    await asyncio.sleep(0)

    assert len({number for number, _ in await rounds_of(2, in_a_round=2)}) == 1
    async with asyncio.timeout(5):
        await turns.mine()
