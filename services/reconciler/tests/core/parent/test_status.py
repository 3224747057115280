"""The parent's status: what it should be, and when it is written."""

import pytest
from builders import a_parent

from metaloop.common.json import JsonObject
from metaloop.reconciler.core.parent.edits import next_status, with_status


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        (None, {"observedGeneration": 3}),
        ({}, {"observedGeneration": 3}),
        ({"phase": "Ready"}, {"phase": "Ready", "observedGeneration": 3}),
        ({"observedGeneration": 99}, {"observedGeneration": 3}),
    ],
)
def test_status_is_the_answered_one_for_the_observed_generation(answered: JsonObject | None, expected: JsonObject):
    assert next_status(a_parent(), answered) == expected


@pytest.mark.parametrize(
    ("stored", "wanted", "expected"),
    [
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({}, {"conditions": None}, True),
        ({}, {}, True),
        (None, {}, False),
        ({"a": 1, "old": 2}, {"a": 1}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"a": True}, False),
        (None, {"observedGeneration": 3}, False),
    ],
)
def test_only_a_status_that_differs_is_written(*, stored: JsonObject | None, wanted: JsonObject, expected: bool):
    parent = a_parent(status=stored) if stored is not None else a_parent()

    assert (with_status(parent, wanted) is None) is expected


def test_status_replaces_the_stored_one_whole():
    parent = a_parent(status={"old": 1})

    assert with_status(parent, {"new": 2}) == a_parent(status={"new": 2})
