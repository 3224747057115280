"""The demo as a user runs it."""

import subprocess
import sys
from pathlib import Path

import pytest

from metaloop.devkit.demo import SCENARIOS

REPOSITORY = Path(__file__).parents[3]
METALOOP = Path(sys.executable).with_name("metaloop")


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_the_demo_completes_its_five_steps() -> None:
    result = subprocess.run([METALOOP, "demo"], cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert result.returncode == 0, result.stderr
    steps = [line for line in result.stdout.splitlines() if line.endswith(" ...")]
    assert len(steps) == 5
    assert "19 parents, 57 children, all converged" in result.stdout


def test_a_folder_without_an_example_is_a_clear_failure(tmp_path: Path) -> None:
    result = subprocess.run([METALOOP, "demo"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert result.returncode == 1
    assert "there is no example in examples/hello" in result.stderr


def test_examples_are_listed() -> None:
    result = subprocess.run([METALOOP, "demo", "--list"], capture_output=True, text=True, check=True)

    assert [line.split()[0] for line in result.stdout.splitlines()] == [*SCENARIOS]


def test_an_unknown_example_is_a_clear_failure() -> None:
    result = subprocess.run([METALOOP, "demo", "goodbye"], cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert result.returncode != 0
    assert "'goodbye' is not one of hello" in " ".join(result.stderr.split())
