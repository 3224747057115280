"""A short torment: everything is killed and stalled at random while parents change. `make chaos` is the long one."""

import pytest

from metaloop.devkit.testbed.chaos import Chaos, ChaosOptions
from metaloop.devkit.testbed.story import Story


@pytest.mark.parametrize("seed", [1])
async def test_nothing_is_lost_and_nothing_doubled(story: Story, seed: int) -> None:
    report = await Chaos(story, ChaosOptions(seed=seed, parents=30, duration_seconds=15)).run()

    assert report.changes > 0
    assert (report.overlaps, report.duplicates) == ([], [])
