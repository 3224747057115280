"""What the demo shows of the objects of a scenario."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.devkit.demo.snapshot import Objects

READY: JsonObject = {"type": "Ready", "status": "True"}

# The kind of an object, its fields, the text in its row, and whether it is as it should be.
ROWS: dict[str, tuple[str, JsonObject, str, bool]] = {
    "a Pod that is ready": ("Pod", {"status": {"phase": "Running", "conditions": [READY]}}, "Ready", True),
    "a Pod that has only started": ("Pod", {"status": {"phase": "Running"}}, "Running", False),
    "a Pod that has succeeded": ("Pod", {"status": {"phase": "Succeeded"}}, "Succeeded", True),
    "a Service": ("Service", {"spec": {"selector": {"app": "web"}}}, "app=web", True),
    "a ConfigMap": ("ConfigMap", {"data": {"a": "1", "b": "2"}}, "a=1, b=2", True),
    "a ReplicaSet": ("ReplicaSet", {"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}, "2 of 3 ready", True),
    "a kind of the example": ("Team", {"status": {"ready": 2, "conditions": []}}, "ready=2", True),
    "an object that is being deleted": ("Team", {"metadata": {"name": "x", "deletionTimestamp": "now"}}, "being deleted", False),
}


@pytest.mark.parametrize("case", ROWS)
def test_a_row_shows_the_content_of_its_kind(case: str) -> None:
    kind, content, text, is_right = ROWS[case]
    objects = Objects(found={kind: {"demo/x": {"metadata": {"name": "x"}, **content}}})

    [row] = objects.rows

    assert (row.cells, row.is_right) == ((kind, "demo/x", text), is_right)


def test_objects_are_counted_by_kind() -> None:
    objects = Objects(found={"Pod": {"a": {}, "b": {}}, "Team": {"c": {}}})

    assert objects.counts == "2 Pods, 1 Team"
