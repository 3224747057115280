"""Each query of the dashboards, alerts and autoscaler is PromQL, and asks for what the services export."""

import json
import re
from pathlib import Path

import pytest
import yaml

from metaloop.common.json import JsonObject

from .exported import PROCESS, families, series
from .promql import Asked, asked_in
from .queries import DASHBOARDS, OPERATOR_RULES, RULES, Query, all_queries, rules

ROOT = Path(__file__).parents[2]
QUERIES = all_queries()
EXPORTED = families()
OF_PROMETHEUS = frozenset({"le", "job", "instance"})
"""Labels that Prometheus adds."""


def unknown_in(asked: Asked) -> set[str]:
    """The series that nothing exports, and the labels that no metric of the expression has."""
    of_them = [family for family in EXPORTED if asked.series.intersection(family.series)]
    labels = OF_PROMETHEUS.union(*(family.labels for family in of_them))
    return set((asked.series - series(EXPORTED)) | (asked.labels - labels))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.place)
def test_query_asks_for_what_is_exported(query: Query):
    asked = asked_in(query.expression)

    assert asked.series
    assert unknown_in(asked) == set()


@pytest.mark.parametrize(
    ("expression", "unknown"),
    [
        ("rate(metaloop_sync_total[5m])", {"metaloop_sync_total"}),
        ("metaloop_sync_seconds", {"metaloop_sync_seconds"}),
        ("sum by (hook) (metaloop_syncs_total)", {"hook"}),
        ('metaloop_syncs_total{result="done"}', {"result"}),
        ("max(up) / sum(nothing_of_the_kind > 1)", {"nothing_of_the_kind"}),
        ("absent(leader_election_master_status == 1)", set[str]()),
    ],
)
def test_name_or_label_that_nothing_exports_is_found(expression: str, unknown: set[str]):
    assert unknown_in(asked_in(expression)) == unknown


def test_what_is_no_promql_is_refused():
    with pytest.raises(ValueError, match="unclosed left parenthesis"):
        asked_in("sum by (le (rate(x[5m]))")


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.name)
def test_panels_of_a_dashboard_have_a_title_a_unit_and_a_place_of_their_own(file: Path):
    panels = json.loads(file.read_text())["panels"]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["fieldConfig"]["defaults"]["unit"] for panel in panels)


def test_every_dashboard_is_deployed():
    listed = yaml.safe_load((DASHBOARDS[0].parent / "kustomization.yaml").read_text())["configMapGenerator"][0]["files"]

    assert sorted(listed) == sorted([*(file.name for file in DASHBOARDS), "metaloop.yml"])


def test_operator_has_the_same_alerts():
    ours, theirs = yaml.safe_load(RULES.read_text()), yaml.safe_load(OPERATOR_RULES.read_text())

    assert theirs["spec"]["groups"] == ours["groups"]


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_alert_says_what_is_wrong_and_where_to_read_on(rule: JsonObject):
    annotations, labels = rule["annotations"], rule["labels"]
    assert isinstance(annotations, dict)
    assert isinstance(labels, dict)

    page, _, anchor = str(annotations["runbook"]).partition("#")

    assert str(annotations["summary"]).endswith(".")
    assert labels["severity"] in {"warning", "critical"}
    assert anchor in anchors_of(ROOT / page)


def test_label_in_the_text_of_an_alert_is_one_of_its_expression():
    for rule in rules():
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert named <= asked_in(str(rule["expr"])).labels, rule["alert"]


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_metrics_of_the_process_are_not_listed_twice():
    assert not PROCESS.intersection(family.name for family in EXPORTED)
