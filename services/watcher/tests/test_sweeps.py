"""Many keys are acted on in turns of the event loop, all of them once and in order."""

import asyncio

from metaloop.common.job import JobKey
from metaloop.common.testing.builders import job_key
from metaloop.watcher.sweeps import KEYS_PER_TURN, Sweeps


def keys(prefix: str, count: int) -> list[JobKey]:
    return [job_key(f"{prefix}{number}") for number in range(count)]


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def test_few_keys_are_acted_on_at_once():
    seen = list[JobKey]()

    Sweeps().add(keys("a", 3), seen.append)

    assert [key.name for key in seen] == names("a", 3)


async def test_many_keys_are_acted_on_in_turns():
    seen, turns = list[JobKey](), list[int]()

    Sweeps().add(keys("a", 3 * KEYS_PER_TURN), seen.append)
    for _ in range(3):
        turns.append(len(seen))
        await asyncio.sleep(0)

    assert turns == [KEYS_PER_TURN, 2 * KEYS_PER_TURN, 3 * KEYS_PER_TURN]
    assert [key.name for key in seen] == names("a", 3 * KEYS_PER_TURN)


async def test_sweeps_come_one_after_another():
    seen, count = list[str](), KEYS_PER_TURN + 1
    sweeps = Sweeps()

    sweeps.add(keys("a", count), lambda key: seen.append(f"mark {key.name}"))
    sweeps.add(keys("a", count), lambda key: seen.append(f"end {key.name}"))
    sweeps.add(keys("b", 1), lambda key: seen.append(f"mark {key.name}"))
    for _ in range(5):
        await asyncio.sleep(0)

    assert seen == [*(f"mark {name}" for name in names("a", count)), *(f"end {name}" for name in names("a", count)), "mark b0"]
