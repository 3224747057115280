"""The table of finalizer rules: what each state of a parent requires."""

from dataclasses import replace
from itertools import product

import pytest
from builders import EMPTY_ANSWER, a_controller, a_parent, observed
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.api.composite import parse_composite
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.parent.finalizer import (
    hook_to_call,
    is_deleted_with_finalizer,
    is_finalized,
    is_ours,
    manages_children,
    with_finalizer,
    without_finalizer,
)

OURS = "metacontroller.io/compositecontroller-things"
WEBHOOK: JsonObject = {"url": "http://hook.example/finalize"}
FINALIZED = replace(EMPTY_ANSWER, finalized=True)


def parent_with(*finalizers: str, finalize: JsonValue = "a webhook", deleting: bool = False, is_selected: bool = True) -> Observed:
    """A parent with these finalizers, and a controller with or without a finalize hook."""
    controller = a_controller()
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    if finalize is not None:
        hooks["finalize"] = {"webhook": WEBHOOK} if finalize == "a webhook" else {}
    parent = a_parent(deleting=deleting)
    unstructured.metadata(parent)["finalizers"] = [*finalizers]
    return replace(observed(parent=parent), controller=parse_composite(controller), is_selected=is_selected)


def settled(seen: Observed) -> list[str]:
    """The parent's finalizers after ours was added or removed."""
    parent = with_finalizer(seen.parent, controller=seen.controller, is_selected=seen.is_selected) or seen.parent
    return unstructured.finalizers(parent)


TABLE: dict[str, tuple[Observed, list[str], bool, str, bool]] = {
    # state: (parent, its finalizers afterwards, ours, hook, children managed)
    "alive, selected": (parent_with(), [OURS], True, "sync", True),
    "alive, selected, has it": (parent_with("x", OURS), ["x", OURS], True, "sync", True),
    "deselected, never ours": (parent_with(is_selected=False), [], False, "finalize", True),
    "deselected, has it": (parent_with(OURS, is_selected=False), [OURS], True, "finalize", True),
    "deleting, has it": (parent_with(OURS, deleting=True), [OURS], True, "finalize", True),
    "deleting in the foreground": (
        parent_with(OURS, "foregroundDeletion", deleting=True),
        [OURS, "foregroundDeletion"],
        True,
        "finalize",
        False,
    ),
    "deleting, orphaning": (parent_with(OURS, "orphan", deleting=True), [OURS, "orphan"], True, "finalize", False),
    "deleting, ours is gone": (parent_with("x", deleting=True), ["x"], True, "finalize", False),
    "deleting, no finalize hook": (parent_with("x", deleting=True, finalize=None), ["x"], True, "sync", False),
    "alive, no finalize hook": (parent_with(finalize=None), [], True, "sync", True),
    "hook was taken away": (parent_with("x", OURS, finalize=None), ["x"], True, "sync", True),
    "deleting, hook was taken away": (parent_with(OURS, finalize=None, deleting=True), [], True, "sync", True),
    "entry without webhook": (parent_with(OURS, finalize="no webhook", deleting=True), [OURS], True, "sync", True),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_each_state_of_a_parent_has_its_finalizer_hook_and_children(row: tuple[Observed, list[str], bool, str, bool]):
    seen, finalizers, ours, hook, managed = row

    assert settled(seen) == finalizers
    assert is_ours(seen) is ours
    assert hook_to_call(seen).name == hook
    assert manages_children(seen, EMPTY_ANSWER) is managed


def test_finalized_is_heard_only_at_its_time():
    assert not is_finalized(parent_with(OURS), FINALIZED)
    assert is_finalized(parent_with(OURS, deleting=True), FINALIZED)
    assert is_finalized(parent_with(OURS, is_selected=False), FINALIZED)
    assert not is_finalized(parent_with(OURS, deleting=True), EMPTY_ANSWER)


def test_children_of_a_finalized_parent_are_the_garbage_collectors():
    assert not manages_children(parent_with(OURS, deleting=True), FINALIZED)


def test_children_of_a_deselected_parent_are_managed_to_the_last():
    assert manages_children(parent_with(OURS, is_selected=False), FINALIZED)


def test_a_parent_vanishes_with_its_last_finalizer():
    assert is_deleted_with_finalizer(parent_with(OURS, deleting=True), FINALIZED)
    assert not is_deleted_with_finalizer(parent_with(OURS, "x", deleting=True), FINALIZED)
    assert not is_deleted_with_finalizer(parent_with(OURS, is_selected=False), FINALIZED)


def test_without_any_hook_there_is_nobody_to_ask():
    seen = parent_with(OURS)
    controller = replace(seen.controller, hooks=replace(seen.controller.hooks, sync=None))

    with pytest.raises(InvalidSpec):
        hook_to_call(replace(seen, controller=controller))


@given(
    others=st.lists(st.sampled_from(["a", "b", "orphan"]), unique=True),
    has_ours=st.booleans(),
    state=st.sampled_from(list(product([None, "a webhook", "no webhook"], [True, False], [True, False]))),
)
def test_settling_the_finalizer_is_done_once_and_touches_no_other(
    others: list[str], *, has_ours: bool, state: tuple[JsonValue, bool, bool]
):
    finalize, deleting, is_selected = state
    seen = parent_with(*others, *([OURS] if has_ours else []), finalize=finalize, deleting=deleting, is_selected=is_selected)

    parent = with_finalizer(seen.parent, controller=seen.controller, is_selected=is_selected) or seen.parent

    assert with_finalizer(parent, controller=seen.controller, is_selected=is_selected) is None
    assert [each for each in unstructured.finalizers(parent) if each != OURS] == others
    assert OURS not in unstructured.finalizers(without_finalizer(parent, seen.controller) or parent)
