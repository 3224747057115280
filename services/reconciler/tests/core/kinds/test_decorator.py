"""How decorators differ: which attachments are theirs, and how they change the parent's metadata."""

from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, EMPTY_ANSWER, PARENT_UID, a_decorator, a_parent, config_map, decorated, group, stored
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.hooks.validation import desired_children
from metaloop.reconciler.core.kinds.decorator import DECORATOR

ANNOTATION = "metacontroller.k8s.io/decorator-controller"


def attachment(name: str, *, by: str = "tags", owner: JsonObject | None = None) -> JsonObject:
    """A stored ConfigMap that a decorator attached."""
    made = stored(config_map(name), owner=owner if owner is not None else a_parent())
    unstructured.metadata(made)["annotations"] = {ANNOTATION: by}
    return made


def test_attachments_are_owned_by_the_parent_and_annotated_by_this_decorator():
    ours, others = attachment("ours"), attachment("others", by="another")
    plain = stored(config_map("plain"), owner=a_parent())
    orphan = stored(config_map("orphan"))
    foreign = attachment("foreign", owner=a_parent(uid="uid-of-a-namesake"))

    claims = DECORATOR.claims(decorated(group(CONFIG_MAPS, ours, others, plain, orphan, foreign)))

    assert [each.objects for each in claims.groups] == [(ours,)]
    assert claims.actions == ()


def test_a_desired_attachment_is_marked_whatever_its_labels():
    answer = replace(EMPTY_ANSWER, children=(config_map("a", labels={"any": "label"}),))

    [child] = desired_children(answer, decorated(group()), variant=DECORATOR)

    assert unstructured.annotations(child.obj) == {ANNOTATION: "tags"}
    assert unstructured.labels(child.obj) == {"any": "label"}


def changed(parent: JsonObject, **changes: dict[str, str | None]) -> JsonObject | None:
    """A parent's metadata after these changes. None if they change nothing."""
    answer = replace(EMPTY_ANSWER, labels=changes.get("labels", {}), annotations=changes.get("annotations", {}))
    result = DECORATOR.with_changes(parent, answer)
    return unstructured.metadata(result) if result is not None else None


@pytest.mark.parametrize(
    ("before", "changes", "after"),
    [
        ({"a": "1"}, {}, None),
        ({"a": "1"}, {"a": "1"}, None),
        ({"a": "1"}, {"b": None}, None),
        ({"a": "1"}, {"a": "2"}, {"a": "2"}),
        ({"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}),
        ({"a": "1", "b": "2"}, {"a": None}, {"b": "2"}),
        (None, {"a": "1"}, {"a": "1"}),
        (None, {"a": None}, None),
    ],
)
@pytest.mark.parametrize("key", ["labels", "annotations"])
def test_changes_set_take_away_and_leave_the_rest(
    *, key: str, before: JsonObject | None, changes: dict[str, str | None], after: JsonObject | None
):
    parent = a_parent()
    if before is not None:
        unstructured.metadata(parent)[key] = before

    metadata = changed(parent, **{key: changes})

    assert (metadata[key] if metadata is not None else None) == after


@given(
    before=st.dictionaries(st.sampled_from("abc"), st.sampled_from("12")),
    changes=st.dictionaries(st.sampled_from("abcd"), st.none() | st.sampled_from("12")),
)
def test_changes_come_to_rest_at_once(before: dict[str, str], changes: dict[str, str | None]):
    parent = a_parent()
    unstructured.metadata(parent)["labels"] = {**before}
    answer = replace(EMPTY_ANSWER, labels=changes)

    once = DECORATOR.with_changes(parent, answer) or parent

    assert DECORATOR.with_changes(once, answer) is None
    assert all(unstructured.labels(once).get(key) == value for key, value in changes.items())


def test_null_status_leaves_the_status_and_any_other_replaces_it():
    assert DECORATOR.next_status(a_parent(), EMPTY_ANSWER) is None
    assert DECORATOR.next_status(a_parent(), replace(EMPTY_ANSWER, status={"a": 1})) == {"a": 1}


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [({"tag": "x"}, {"on": ""}, True), ({"tag": "x"}, {}, False), ({}, {"on": ""}, False)],
)
def test_both_selectors_must_match(*, labels: JsonObject, annotations: JsonObject, expected: bool):
    rule: JsonObject = {"labelSelector": {"matchLabels": {"tag": "x"}}}
    rule["annotationSelector"] = {"matchExpressions": [{"key": "on", "operator": "Exists"}]}
    parent = a_parent()
    unstructured.metadata(parent).update(labels=labels, annotations=annotations)

    assert DECORATOR.is_selected(decorated(group(), parent=parent, controller=a_decorator(rule=rule))) is expected


def test_the_parents_uid_is_who_owns():
    assert unstructured.uid(a_parent()) == PARENT_UID
