"""When the load of map controllers counts an output, and when it takes the parent as mapped."""

import pytest

from bench.mapping import PARENT, inputs, is_mapped, is_output
from metaloop.common.json import JsonObject


def status_of(*, inputs: int, outputs: int, ready: str = "True") -> JsonObject:
    return {
        "inputs": {"configmaps": {"total": inputs}},
        "outputs": {"configmaps": {"total": outputs}},
        "conditions": [{"type": "Theirs", "status": "False"}, {"type": "Ready", "status": ready}],
    }


@pytest.mark.parametrize(
    ("status", "mapped"),
    [
        (status_of(inputs=2, outputs=2), True),
        (status_of(inputs=3, outputs=2), False),
        (status_of(inputs=2, outputs=1), False),
        (status_of(inputs=2, outputs=2, ready="False"), False),
        ({}, False),
    ],
    ids=["all", "more inputs", "an output is missing", "not ready", "no status"],
)
def test_parent_is_mapped_when_its_status_counts_all_and_is_ready(status: JsonObject, *, mapped: bool) -> None:
    assert is_mapped({"metadata": {"name": PARENT}, "status": status}, 2) is mapped


@pytest.mark.parametrize(("labels", "counted"), [({"of": PARENT}, True), ({"of": "another"}, False), ({"input": "yes"}, False)])
def test_output_is_told_by_the_label_of_its_parent(labels: JsonObject, *, counted: bool) -> None:
    assert is_output({"metadata": {"name": "x", "labels": labels}}) is counted


def test_inputs_are_named_by_their_number() -> None:
    assert inputs(2) == ["i0", "i1"]
