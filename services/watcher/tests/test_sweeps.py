"""Many keys are marked in turns of the event loop, all of them once and in order."""

import asyncio

from metaloop.common.job import JobKey
from metaloop.common.testing.builders import job_key
from metaloop.watcher.sweeps import KEYS_PER_TURN, Sweeps


class Marked:
    """Remembers what is marked."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def mark(self, key: JobKey, reason: str) -> None:
        self.names.append(f"{key.name} {reason}")


def keys(prefix: str, count: int) -> list[JobKey]:
    return [job_key(f"{prefix}{number}") for number in range(count)]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number} why" for number in range(count)]


def test_few_keys_are_marked_at_once():
    marked = Marked()

    Sweeps(marked.mark).add(keys("a", 3), "why")

    assert marked.names == names("a", 3)


async def test_many_keys_are_marked_in_turns():
    marked, turns = Marked(), list[int]()

    Sweeps(marked.mark).add(keys("a", 3 * KEYS_PER_TURN), "why")
    for _ in range(3):
        turns.append(len(marked.names))
        await asyncio.sleep(0)

    assert turns == [KEYS_PER_TURN, 2 * KEYS_PER_TURN, 3 * KEYS_PER_TURN]
    assert marked.names == names("a", 3 * KEYS_PER_TURN)


async def test_sweeps_are_marked_one_after_another():
    marked, count = Marked(), KEYS_PER_TURN + 1
    sweeps = Sweeps(marked.mark)

    sweeps.add(keys("a", count), "why")
    sweeps.add(keys("b", count), "why")
    sweeps.add(keys("c", 1), "why")
    for _ in range(5):
        await asyncio.sleep(0)

    assert marked.names == [*names("a", count), *names("b", count), *names("c", 1)]
