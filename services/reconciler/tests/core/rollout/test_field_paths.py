"""Fields that are extracted from a parent and put into a later state of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, dumps
from metaloop.reconciler.core.rollout.field_paths import patch_in, paths, shared, with_patch, with_present

THEN: JsonObject = {"spec": {"template": {"text": "then", "gone": 1}, "replicas": 1}}
NOW: JsonObject = {"spec": {"template": {"text": "now"}, "replicas": 2, "new": True}, "status": {}}

trees = st.recursive(st.integers(0, 3), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8).filter(
    lambda tree: isinstance(tree, dict)
)
fields = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map(tuple), max_size=4)


def test_patch_has_the_fields_and_nothing_else():
    assert patch_in(THEN, paths(["spec.template.text", "spec.missing", "spec.replicas.deeper"])) == {"spec": {"template": {"text": "then"}}}


def test_field_is_put_back_whole_and_its_neighbours_stay():
    fields = paths(["spec.template"])

    assert with_patch(NOW, patch_in(THEN, fields), fields) == {
        "spec": {"template": {"text": "then", "gone": 1}, "replicas": 2, "new": True},
        "status": {},
    }


def test_field_that_was_not_there_is_taken_away_or_left():
    fields = paths(["spec.new"])

    assert "new" not in with_patch(NOW, THEN, fields)["spec"]  # type: ignore[operator]
    assert with_present(NOW, THEN, fields) == NOW


@pytest.mark.parametrize(
    ("some", "others", "expected"),
    [
        (["spec"], ["spec.template"], ["spec.template"]),
        (["spec.template"], ["spec"], ["spec.template"]),
        (["spec.a", "spec.b"], ["spec.b", "spec.c"], ["spec.b"]),
        (["spec.template"], ["spec.templates"], []),
    ],
)
def test_shared_fields_are_the_inner_ones(some: list[str], others: list[str], expected: list[str]):
    assert tuple(shared(paths(some), paths(others))) == paths(expected)


@given(then=trees, now=trees, fields=fields)
def test_what_was_put_back_is_what_was_taken_out(then: JsonObject, now: JsonObject, fields: list[tuple[str, ...]]):
    before = dumps([then, now])

    patch = patch_in(then, fields)

    assert patch_in(patch, fields) == patch
    assert patch_in(with_present(now, patch, fields), fields[:1]) == patch_in(patch, fields[:1]) or not patch_in(patch, fields[:1])
    assert dumps([then, now]) == before
