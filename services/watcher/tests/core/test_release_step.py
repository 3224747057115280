"""The next step for a controller whose parents are to be released before it goes."""

import pytest

from metaloop.common.api import ON_DELETION_ANNOTATION, RELEASE_FINALIZER, RELEASE_FINALIZERS
from metaloop.common.json import JsonObject
from metaloop.watcher.core.release_step import (
    ReleaseStep,
    finalizers_left_message,
    release_step_of,
    with_release_finalizer,
    without_release_finalizer,
)

OPTED_IN: JsonObject = {ON_DELETION_ANNOTATION: RELEASE_FINALIZERS}
GOING = "2026-01-01T00:00:00Z"


def a_controller(*, annotations: JsonObject | None = None, finalizers: tuple[str, ...] = (), going: bool = False) -> JsonObject:
    metadata: JsonObject = {"name": "c", "annotations": annotations or {}, "finalizers": [*finalizers]}
    return {"kind": "CompositeController", "metadata": {**metadata, "deletionTimestamp": GOING} if going else metadata}


@pytest.mark.parametrize(
    ("controller", "step"),
    [
        (a_controller(), ReleaseStep.NOTHING),
        (a_controller(annotations={ON_DELETION_ANNOTATION: "orphan"}), ReleaseStep.NOTHING),
        (a_controller(annotations=OPTED_IN), ReleaseStep.ADD_FINALIZER),
        (a_controller(annotations=OPTED_IN, finalizers=(RELEASE_FINALIZER,)), ReleaseStep.NOTHING),
        (a_controller(finalizers=(RELEASE_FINALIZER,)), ReleaseStep.REMOVE_FINALIZER),
        (a_controller(annotations=OPTED_IN, finalizers=(RELEASE_FINALIZER,), going=True), ReleaseStep.RELEASE_PARENTS),
        (a_controller(annotations=OPTED_IN, finalizers=("others",), going=True), ReleaseStep.NOTHING),
        (a_controller(finalizers=(RELEASE_FINALIZER,), going=True), ReleaseStep.REMOVE_FINALIZER),
    ],
)
def test_next_step_follows_from_annotation_finalizer_and_deletion(controller: JsonObject, step: ReleaseStep):
    assert release_step_of(controller) is step


def test_finalizers_of_others_stay():
    controller = a_controller(finalizers=("a", RELEASE_FINALIZER, "b"))

    assert without_release_finalizer(controller) == ["a", "b"]
    assert with_release_finalizer(controller) == ["a", "b", RELEASE_FINALIZER]


def test_the_message_about_finalizers_left_says_how_to_remove_them():
    message = finalizers_left_message(
        "metacontroller.io/x", ["things n/a", "things n/b", "things n/c", "things n/d"], kind="CompositeController", name="x"
    )

    assert message.startswith("4 parents still have the finalizer metacontroller.io/x")
    assert "things n/a, things n/b, things n/c, …" in message
    assert "metaloop release-finalizers CompositeController/x" in message
    assert "metaloop.dev/on-deletion: release-finalizers" in message


@pytest.mark.parametrize(
    ("finalizer", "command"),
    [
        ("metacontroller.io/compositecontroller-x", "`metaloop release-finalizers CompositeController/x`"),
        ("op.example.com/finalizer", "`metaloop release-finalizers CompositeController/x --finalizer op.example.com/finalizer`"),
    ],
)
def test_finalizer_is_part_of_the_command_where_the_name_does_not_tell_it(finalizer: str, command: str):
    assert command in finalizers_left_message(finalizer, ["things n/a"], kind="CompositeController", name="x")
