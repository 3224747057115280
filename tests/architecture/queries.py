"""What the dashboards, the alerts and the autoscaler ask Prometheus for."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from metaloop.common.json import JsonObject

_DEPLOY = Path(__file__).parents[2] / "deploy"
DASHBOARDS = tuple(sorted((_DEPLOY / "compose" / "grafana" / "dashboards").glob("*.json")))
RULES = _DEPLOY / "kustomize" / "components" / "observability" / "rules.yml"
SCALED_OBJECT = _DEPLOY / "kustomize" / "components" / "keda" / "scaledobject.yaml"
OPERATOR_RULES = _DEPLOY / "kustomize" / "components" / "monitoring" / "prometheusrule.yaml"

_OF_GRAFANA = {"$__rate_interval": "5m", "$__range": "1h", "$__interval": "1m"}
_LABEL_VALUES = re.compile(r"label_values\((?P<expression>.+), (?P<label>\w+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One expression, and where it stands."""

    place: str
    expression: str


def all_queries() -> list[Query]:
    """Those of every dashboard, of every alert, and of the autoscaler."""
    return [*(query for file in DASHBOARDS for query in _of_dashboard(file)), *_of_rules(), *_of_autoscaler()]


def rules() -> list[JsonObject]:
    """The alerts."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def _of_rules() -> Iterator[Query]:
    return (Query(place=f"{RULES.name}: {rule['alert']}", expression=str(rule["expr"])) for rule in rules())


def _of_autoscaler() -> Iterator[Query]:
    triggers = yaml.safe_load(SCALED_OBJECT.read_text())["spec"]["triggers"]
    return (Query(place=f"{SCALED_OBJECT.parent.name}: {trigger['type']}", expression=trigger["metadata"]["query"]) for trigger in triggers)


def _of_dashboard(file: Path) -> Iterator[Query]:
    dashboard = json.loads(file.read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield Query(place=f"{file.name}: {panel['title']}", expression=_without_variables(target["expr"]))
    for variable in dashboard["templating"]["list"]:
        found = _LABEL_VALUES.fullmatch(variable["query"]["query"])
        assert found is not None, variable
        yield Query(place=f"{file.name}: ${variable['name']}", expression=f"sum by ({found['label']}) ({found['expression']})")


def _without_variables(expression: str) -> str:
    for variable, value in _OF_GRAFANA.items():
        expression = expression.replace(variable, value)
    return re.sub(r"\$\{?\w+\}?", ".*", expression)
