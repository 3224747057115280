"""The page of metrics lists what the services export, and their names follow the conventions of Prometheus."""

import re
from pathlib import Path

import pytest

from metaloop.common.telemetry.metrics import Family

from .exported import families

PAGE = Path(__file__).parents[2] / "docs" / "api" / "metrics.md"
UNITS = ("seconds", "bytes", "ratio", "total", "info")
FAMILIES = families()


def row(family: Family) -> str:
    """The line of a metric on the page."""
    labels = ", ".join(f"`{label}`" for label in family.labels)
    return f"| `{family.name}` | {family.kind} | {labels} | {family.documentation} |"


def test_page_lists_exactly_what_the_services_export():
    on_the_page = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]

    assert on_the_page == [row(family) for family in FAMILIES]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_name_follows_the_conventions(family: Family):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert family.kind != "histogram" or family.name.endswith(UNITS)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_no_label_has_a_value_for_each_object(family: Family):
    assert not {"parent", "child", "namespace", "uid", "key", "part", "worker", "trace_id"}.intersection(family.labels)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_documentation_is_a_sentence(family: Family):
    assert re.fullmatch(r"[A-Z].*[.]", family.documentation)
