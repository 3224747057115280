"""Each story ends well where nothing goes wrong, and a seed decides everything."""

import os
import subprocess
import sys

import pytest

from metaloop.simulation.faultplan import FaultPlan, RandomFaults
from metaloop.simulation.more_stories import ALL_STORIES
from metaloop.simulation.run import Result, run
from metaloop.simulation.stories import STORIES

DIGEST = """
from metaloop.simulation.faultplan import RandomFaults
from metaloop.simulation.more_stories import ALL_STORIES
from metaloop.simulation.run import run
from metaloop.simulation.stories import STORIES
print(run(STORIES["change"], RandomFaults("3"), seed="3").history.digest)
"""


def shown(result: Result) -> str:
    return "\n".join([*result.problems, *result.history.lines[-40:]])


@pytest.mark.parametrize("name", ALL_STORIES)
def test_a_story_ends_well_where_nothing_goes_wrong(name: str):
    result = run(ALL_STORIES[name], FaultPlan(), seed="1")

    assert result.is_good, shown(result)


@pytest.mark.parametrize("name", ["change", "failover"])
def test_one_seed_has_one_history(name: str):
    first, second = (run(STORIES[name], RandomFaults("7"), seed="7") for _ in range(2))

    assert first.history.lines == second.history.lines


def test_another_seed_has_another_history():
    first, second = (run(STORIES["change"], RandomFaults(seed), seed=seed) for seed in ("7", "8"))

    assert first.history.digest != second.history.digest


def test_a_history_is_the_same_in_every_process():
    """Sets and hashes of text differ from process to process."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", DIGEST], check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": hash_seed}
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(digests) == 1


def test_time_passes_at_least_twenty_times_as_fast_as_in_the_world():
    """Measured in CPU time, since other tests share the machine."""
    began = os.times().user
    result = run(STORIES["create"], FaultPlan(), seed="1")

    assert result.seconds / max(os.times().user - began, 0.01) > 20
