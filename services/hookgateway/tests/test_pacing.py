"""Many tasks at once, started a few per iteration of the event loop."""

import asyncio

from metaloop.hookgateway.pacing import Pacer


class IterationCounter:
    """Counts the event loop's iterations."""

    def __init__(self) -> None:
        self.number = 0
        self._count()

    def _count(self) -> None:
        self.number += 1
        self._next = asyncio.get_running_loop().call_soon(self._count)

    def stop(self) -> None:
        self._next.cancel()


async def starts(tasks: int, *, per_iteration: int) -> list[tuple[int, int]]:
    """For each task in the order of their starts: the iteration, and which task it is."""
    pacer, iterations = Pacer(per_iteration), IterationCounter()
    seen: list[tuple[int, int]] = []

    async def one(number: int) -> None:
        await pacer.wait()
        seen.append((iterations.number, number))

    async with asyncio.TaskGroup() as group:
        for number in range(tasks):
            group.create_task(one(number))
    iterations.stop()
    return seen


async def test_few_tasks_start_in_the_same_iteration():
    seen = await starts(8, per_iteration=8)

    assert len({iteration for iteration, _ in seen}) == 1


async def test_many_tasks_start_a_few_per_iteration_in_their_order():
    seen = await starts(50, per_iteration=8)

    iterations = [iteration for iteration, _ in seen]
    assert [task for _, task in seen] == [*range(50)]
    assert max(iterations.count(iteration) for iteration in iterations) == 8
    assert len(set(iterations)) == 7


async def test_cancelled_task_leaves_its_start_to_the_next():
    pacer = Pacer(1)
    tasks = [asyncio.create_task(pacer.wait()) for _ in range(4)]
    await asyncio.sleep(0)

    tasks[1].cancel()

    async with asyncio.timeout(30):
        await asyncio.gather(tasks[0], *tasks[2:])


async def test_pacer_starts_tasks_at_once_again_after_a_burst():
    pacer = Pacer(2)
    await asyncio.gather(*(pacer.wait() for _ in range(9)))
    await asyncio.sleep(0)

    assert len({iteration for iteration, _ in await starts(2, per_iteration=2)}) == 1
    async with asyncio.timeout(30):
        await pacer.wait()
