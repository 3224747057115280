"""Fifty seeds of faults, and a crash at each point of one story. `make simulate` runs many more."""

from dataclasses import replace
from pathlib import Path

import pytest

from metaloop.simulation.__main__ import Record, main, run_crash, run_seed
from metaloop.simulation.run import Result

SEEDS = 50


def shown(result: Result) -> str:
    return "\n".join([*result.problems, *result.history.lines[-60:]])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_seed_ends_well(seed: int):
    result = run_seed(seed)

    assert result.is_good, shown(result)


def test_a_crash_at_any_write_or_message_of_a_creation_ends_well():
    points = run_crash("adoption", None).points
    results = [run_crash("adoption", point) for point in range(points)]

    assert points > 20
    assert [shown(result) for result in results if not result.is_good] == []


def test_the_history_of_a_seed_can_be_shown(capsys: pytest.CaptureFixture[str]):
    status = main(["--seed", "3"])

    out = capsys.readouterr().out
    assert status == 0
    assert "finalize, seed 3: history" in out
    assert "user           delete things a" in out


def test_a_crash_can_be_repeated(capsys: pytest.CaptureFixture[str]):
    status = main(["--story", "create", "--crash-point", "20"])

    assert status == 0
    assert "CRASH" in capsys.readouterr().out


def test_a_recorded_series_goes_on_where_it_was_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    record = tmp_path / "seeds.txt"
    series = ["--no-points", "--workers", "1", "--record", str(record)]
    main(["--seeds", "1", *series])
    first = record.read_text()

    status = main(["--seeds", "2", *series])

    assert status == 0
    assert record.read_text().startswith(first)
    assert [line.split()[1] for line in record.read_text().splitlines()] == ["0", "1"]
    assert capsys.readouterr().out.splitlines()[-1].startswith("1 runs, 0 with problems")


def test_a_record_names_what_is_wrong(tmp_path: Path):
    record = Record(tmp_path / "seeds.txt")
    bad = replace(run_seed(1), problems=("two live hook calls", "1 writes at rest"))

    record.add("--seed 1", bad)

    assert (tmp_path / "seeds.txt").read_text().endswith(" s: PROBLEM two live hook calls; 1 writes at rest\n")
    assert Record(tmp_path / "seeds.txt").seeds == {1}
