"""The archive of the chart: it is whole without the repository around it."""

import tarfile
from pathlib import Path

from release.chart import package_chart

CHART = Path(__file__).parents[2] / "deploy" / "chart"


def names_in(archive: Path) -> set[str]:
    with tarfile.open(archive) as opened:
        assert not [entry.name for entry in opened if entry.issym() or entry.islnk()]
        return {entry.name for entry in opened if entry.isfile()}


def test_the_files_that_links_lead_to_are_in_the_archive(tmp_path: Path):
    package_chart(CHART, tmp_path / "chart.tgz")

    names = names_in(tmp_path / "chart.tgz")
    assert {
        "metaloop/Chart.yaml",
        "metaloop/templates/objects.yaml",
        "metaloop/base/roles.yaml",
        "metaloop/components/ha/nats.conf",
    } <= names


def test_what_the_chart_does_not_read_is_left_out(tmp_path: Path):
    package_chart(CHART, tmp_path / "chart.tgz")

    names = names_in(tmp_path / "chart.tgz")
    assert not [name for name in names if name.endswith("kustomization.yaml") or "/observability/" in name]
