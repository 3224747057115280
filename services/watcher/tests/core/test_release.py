"""What is next for a controller that may have to free its parents before it goes."""

import pytest

from metaloop.common.api import ON_DELETION_ANNOTATION, RELEASE_FINALIZER, RELEASE_FINALIZERS
from metaloop.common.json import JsonObject
from metaloop.watcher.core.release import Step, left_behind, step_of, with_release_finalizer

OPTED_IN: JsonObject = {ON_DELETION_ANNOTATION: RELEASE_FINALIZERS}
GOING = "2026-01-01T00:00:00Z"


def a_controller(*, annotations: JsonObject | None = None, finalizers: tuple[str, ...] = (), going: bool = False) -> JsonObject:
    metadata: JsonObject = {"name": "c", "annotations": annotations or {}, "finalizers": [*finalizers]}
    return {"kind": "CompositeController", "metadata": {**metadata, "deletionTimestamp": GOING} if going else metadata}


@pytest.mark.parametrize(
    ("controller", "step"),
    [
        (a_controller(), Step.NOTHING),
        (a_controller(annotations={ON_DELETION_ANNOTATION: "orphan"}), Step.NOTHING),
        (a_controller(annotations=OPTED_IN), Step.HOLD),
        (a_controller(annotations=OPTED_IN, finalizers=(RELEASE_FINALIZER,)), Step.NOTHING),
        (a_controller(finalizers=(RELEASE_FINALIZER,)), Step.LET_GO),
        (a_controller(annotations=OPTED_IN, finalizers=(RELEASE_FINALIZER,), going=True), Step.RELEASE),
        (a_controller(annotations=OPTED_IN, finalizers=("others",), going=True), Step.NOTHING),
        (a_controller(finalizers=(RELEASE_FINALIZER,), going=True), Step.LET_GO),
    ],
)
def test_next_step_follows_from_annotation_finalizer_and_deletion(controller: JsonObject, step: Step):
    assert step_of(controller) is step


def test_finalizers_of_others_stay():
    controller = a_controller(finalizers=("a", RELEASE_FINALIZER, "b"))

    assert with_release_finalizer(controller, held=False) == ["a", "b"]
    assert with_release_finalizer(controller, held=True) == ["a", "b", RELEASE_FINALIZER]


def test_what_is_left_behind_is_told_with_the_ways_out():
    message = left_behind(
        "metacontroller.io/x", ["things n/a", "things n/b", "things n/c", "things n/d"], kind="CompositeController", name="x"
    )

    assert message.startswith("4 parents still have the finalizer metacontroller.io/x")
    assert "things n/a, things n/b, things n/c, …" in message
    assert "metaloop release-finalizers CompositeController/x" in message
    assert "metaloop.dev/on-deletion: release-finalizers" in message
