"""A defaulted `rollingUpdate` that contradicts the desired strategy is removed."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.configuration import without_stale_rolling_update
from metaloop.reconciler.core.apply.last_applied import applied_to
from metaloop.reconciler.core.apply.schema import NO_SCHEMA

DEFAULT: JsonObject = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}


def deployment(strategy: JsonObject, *, api_version: str = "apps/v1") -> JsonObject:
    """A Deployment, or another kind of that name."""
    return {"apiVersion": api_version, "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"replicas": 1, "strategy": strategy}}


def test_another_type_takes_away_what_was_there_by_default():
    applied = applied_to(deployment(DEFAULT), deployment({"type": "Recreate"}), schema=NO_SCHEMA)

    assert unstructured.child_object(applied.obj, "spec")["strategy"] == {"type": "Recreate"}
    assert applied.is_changed


@pytest.mark.parametrize(
    "configuration",
    [
        deployment({}),
        deployment({"type": "RollingUpdate"}),
        deployment({"type": "Recreate", "rollingUpdate": {}}),
        deployment({"type": "Recreate"}, api_version="example.com/v1"),
    ],
)
def test_nothing_else_is_taken_away(configuration: JsonObject):
    observed = deployment(DEFAULT)

    assert without_stale_rolling_update(observed, configuration) is observed
