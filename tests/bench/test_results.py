"""Results are written with what they were measured on, and read again to compare with."""

import json
from pathlib import Path

from bench import results
from bench.calibration import Calibration
from bench.comparison import last_of
from bench.figures import AtMost, Figure, Raw
from bench.scenarios import SCENARIOS

FIGURE = Figure(name="time", value=17_700, unit="creates", bound=AtMost(limit=21_000), raw=Raw(value=7.7, unit="s"))
CALIBRATION = Calibration(creates_per_second=2_300, create_cpu_seconds=0.00087)


def test_results_are_found_again_as_the_last_of_their_scenario(tmp_path: Path) -> None:
    results.write(tmp_path, {"create": [FIGURE]}, calibrations=[CALIBRATION], quick=False)

    last = last_of("create", results.read_all(tmp_path))

    assert last is not None
    assert last.figures == {("time", "creates"): 17_700}


def test_results_tell_seconds_bound_and_calibration(tmp_path: Path) -> None:
    path = results.write(tmp_path, {"create": [FIGURE]}, calibrations=[CALIBRATION], quick=True)

    document = json.loads(path.read_text())

    (figure,) = document["scenarios"]["create"]
    assert (figure["raw"], figure["bound"], figure["verdict"]) == ({"value": 7.7, "unit": "s"}, "<= 21,000", "holds")
    assert document["calibrations"] == [{"creates_per_second": 2_300, "create_cpu_seconds": 0.00087}]
    assert document["quick"]


def test_folder_that_does_not_exist_holds_no_results(tmp_path: Path) -> None:
    assert results.read_all(tmp_path / "none") == []


def test_recorded_results_are_of_scenarios_that_exist() -> None:
    records = results.read_all(results.FOLDER)

    assert records
    assert {name for record in records for name in record.scenarios} <= set(SCENARIOS)
