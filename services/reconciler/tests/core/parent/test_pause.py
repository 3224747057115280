"""Paused parents: the steps of a sync, and the condition in the status."""

from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, THINGS, a_controller, a_parent, decorated, group, observed
from scripted import NOW, Script, play

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.composite import parse_composite
from metaloop.common.errors import ApiStatus, Unavailable
from metaloop.common.json import JsonObject, is_object
from metaloop.common.kube.errors import Invalid
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.kinds.composite import COMPOSITE
from metaloop.reconciler.core.kinds.decorator import DECORATOR
from metaloop.reconciler.core.model import Observed, ParentEdit
from metaloop.reconciler.core.parent.pause import has_paused_condition, supports_conditions, with_paused_condition
from metaloop.reconciler.core.steps import ConditionsUnsupported, EditParent, Forget, PauseAnnounced

PAUSED: JsonObject = {"annotations": {PAUSED_ANNOTATION: "true"}}
READY: JsonObject = {"type": "Ready", "status": "True"}
SAID: JsonObject = {"type": "Paused", "status": "True"}
TOLD, NO_ROOM = PauseAnnounced("uid-of-parent"), ConditionsUnsupported(THINGS.id)


def a_pause(*, status: JsonObject | None = None) -> Observed:
    """A paused parent."""
    parent = a_parent(status={} if status is None else status)
    unstructured.metadata(parent).update(PAUSED)
    return observed(parent=parent)


# -- the condition -----------------------------------------------------------------------------------------------------


def condition_of(parent: JsonObject, *, at: str = "2026-01-02T03:04:05Z") -> list[JsonObject] | None:
    """The conditions of a parent after the pause was written. None if there was nothing to write."""
    written = with_paused_condition(parent, at=at)
    if written is None:
        return None
    conditions = unstructured.child_object(written, "status")["conditions"]
    assert isinstance(conditions, list)
    return [each for each in conditions if is_object(each)]


def test_pause_is_a_condition_with_its_reason_and_the_way_out_of_it():
    conditions = condition_of(a_parent())

    assert conditions is not None
    [condition] = conditions
    assert (condition["type"], condition["status"], condition["reason"]) == ("Paused", "True", "PausedByAnnotation")
    assert condition["lastTransitionTime"] == "2026-01-02T03:04:05Z"
    assert PAUSED_ANNOTATION in str(condition["message"])


CONDITIONS: dict[str, tuple[JsonObject, list[str] | None]] = {
    # what it shows: (the status, the types of its conditions afterwards)
    "no status": ({}, ["Paused"]),
    "no conditions": ({"phase": "Well"}, ["Paused"]),
    "conditions of others stay before it": ({"conditions": [READY]}, ["Ready", "Paused"]),
    "an older one of ours is replaced": ({"conditions": [{"type": "Paused", "status": "False"}, READY]}, ["Ready", "Paused"]),
    "it says so already": ({"conditions": [READY, SAID]}, None),
    "conditions that are none are replaced": ({"conditions": "none"}, ["Paused"]),
}


@pytest.mark.parametrize("case", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_condition_stands_once_and_behind_those_of_others(case: tuple[JsonObject, list[str] | None]):
    status, types = case

    conditions = condition_of(a_parent(status=status))

    assert (conditions and [each["type"] for each in conditions]) == types


def test_rest_of_the_status_stays():
    written = with_paused_condition(a_parent(status={"phase": "Well"}), at="now")

    assert written is not None
    assert unstructured.child_object(written, "status")["phase"] == "Well"
    assert has_paused_condition(written)


@pytest.mark.parametrize(
    ("seen", "has_room"),
    [
        (observed(), True),
        (observed(parent=a_parent(status={"conditions": []})), True),
        (observed(parent=a_parent(status={"conditions": "none"})), False),
        (observed(parent=a_parent(CONFIG_MAPS), info=CONFIG_MAPS), False),
    ],
    ids=["no conditions yet", "a list", "no list", "a kind without status"],
)
def test_room_for_conditions_is_a_status_that_has_a_list_or_nothing_there(seen: Observed, *, has_room: bool):
    assert supports_conditions(seen) is has_room


# -- the steps of a sync -----------------------------------------------------------------------------------------------


def dropped(_edit: ParentEdit, parent: JsonObject) -> JsonObject:
    """The parent after an edit, if its kind has no conditions in its status."""
    return parent


def test_paused_parent_is_told_so_and_nothing_else_is_done():
    played = play(a_pause(), COMPOSITE)

    assert played.lines == ["recall ConditionsUnsupported", "parent: paused", "event: Normal Paused"]


def test_pause_is_written_as_of_now():
    [edit] = [step for step in play(a_pause(), COMPOSITE).steps if isinstance(step, EditParent)]

    written = edit.edit.mutate(edit.observed.parent)

    assert written == with_paused_condition(edit.observed.parent, at=NOW.strftime("%Y-%m-%dT%H:%M:%SZ"))


PAUSES: dict[str, tuple[Observed, Script, list[str]]] = {
    # what it shows: (the parent, what happens, the steps)
    "its status says so already": (a_pause(status={"conditions": [SAID]}), Script(), []),
    "its controller is paused, not itself": (
        replace(observed(), controller=parse_composite({**a_controller(), "metadata": {"name": "things", "uid": "u", **PAUSED}})),
        Script(),
        [],
    ),
    "its status has no place for conditions": (
        a_pause(status={"conditions": "none"}),
        Script(),
        ["recall PauseAnnounced", "learn PauseAnnounced", "event: Normal Paused"],
    ),
    "it was told where there is no place": (
        a_pause(status={"conditions": "none"}),
        Script(known=frozenset({TOLD})),
        ["recall PauseAnnounced"],
    ),
    "the condition is dropped": (
        a_pause(),
        Script(edited=dropped),
        [
            "recall ConditionsUnsupported",
            "parent: paused",
            "learn ConditionsUnsupported",
            "recall PauseAnnounced",
            "learn PauseAnnounced",
            "event: Normal Paused",
        ],
    ),
    "the condition is refused": (
        a_pause(),
        Script(failing={"parent: paused": Invalid(ApiStatus(code=422, reason="Invalid", message="no such field"))}),
        [
            "recall ConditionsUnsupported",
            "parent: paused",
            "learn ConditionsUnsupported",
            "recall PauseAnnounced",
            "learn PauseAnnounced",
            "event: Normal Paused",
        ],
    ),
    "its kind is known to drop conditions": (
        a_pause(),
        Script(known=frozenset({NO_ROOM})),
        ["recall ConditionsUnsupported", "recall PauseAnnounced", "learn PauseAnnounced", "event: Normal Paused"],
    ),
    "it vanished": (
        a_pause(),
        Script(edited=lambda _edit, _parent: None),
        ["recall ConditionsUnsupported", "parent: paused", "recall PauseAnnounced", "learn PauseAnnounced", "event: Normal Paused"],
    ),
}


@pytest.mark.parametrize("pause", PAUSES.values(), ids=PAUSES.keys())
def test_pause_is_told_once_where_there_is_a_place_for_it(pause: tuple[Observed, Script, list[str]]):
    seen, script, steps = pause

    played = play(seen, COMPOSITE, script)

    assert (played.lines, played.failure) == (steps, None)


def test_pause_of_a_decorated_object_is_an_event_alone():
    parent = a_parent()
    unstructured.metadata(parent).update(PAUSED)

    played = play(decorated(group(), parent=parent), DECORATOR)

    assert played.lines == ["recall PauseAnnounced", "learn PauseAnnounced", "event: Normal Paused"]


def test_parent_that_goes_on_forgets_that_its_pause_was_told():
    played = play(observed(), COMPOSITE)

    assert played.steps[0] == Forget(TOLD)


def test_status_that_can_not_be_written_for_now_ends_the_sync():
    """An API server that is unavailable does not show whether conditions are supported."""
    away = Unavailable("no route")

    played = play(a_pause(), COMPOSITE, Script(failing={"parent: paused": away}))

    assert (played.lines[-1], played.failure) == ("parent: paused", away)
