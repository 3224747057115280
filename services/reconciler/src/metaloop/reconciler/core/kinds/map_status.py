"""The status of a parent of a MapController: what the watcher counted, which inputs fail, and whether all is well.

Rules
    1. While not every input has been synced since the parent changed or the watcher started, nobody knows how many
       fail. What was known of the same generation stays until then. So a restart writes nothing.
    2. Conditions of others stay, and so do fields of others.
"""

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.parent.edits import with_status
from metaloop.reconciler.core.parent.pause import CONDITION as PAUSED

READY = "Ready"


def with_counts(parent: JsonObject, *, summary: JsonObject, at: str) -> JsonObject | None:
    """`parent` with the status that follows from a `summary` of its parts. None if it has that status already."""
    return with_status(parent, next_status(parent, summary, at=at))


def next_status(parent: JsonObject, summary: JsonObject, *, at: str) -> JsonObject:
    """The status that a parent should have. `at` is the transition time of a changed condition."""
    former, generation = unstructured.child_object(parent, "status"), unstructured.generation(parent)
    known, before = _is_known(former, generation), _ready_in(former)
    if unstructured.integer(summary, "pending") and known and before is not None:
        failing, ready = former.get("failing"), before
    else:
        failing, ready = summary.get("failing"), _ready(summary, generation)
    if before is not None and before.get("status") == ready.get("status"):
        ready = {**ready, "lastTransitionTime": before.get("lastTransitionTime")}
    return {
        **former,
        "observedGeneration": generation,
        "inputs": summary.get("inputs"),
        "outputs": summary.get("outputs"),
        "failing": failing,
        "conditions": [*_others(former), {"lastTransitionTime": at, **ready}],
    }


def _is_known(former: JsonObject, generation: int) -> bool:
    return "failing" in former and unstructured.integer(former, "observedGeneration") == generation


def _ready(summary: JsonObject, generation: int) -> JsonObject:
    failing = unstructured.child_object(summary, "failing")
    count = unstructured.integer(failing, "count")
    if count:
        return _condition("False", "InputsFailing", _message(failing, count), generation)
    if unstructured.integer(summary, "pending"):
        return _condition("False", "Mapping", "not all inputs have been mapped yet", generation)
    return _condition("True", "Mapped", "all inputs are mapped", generation)


def _condition(status: str, reason: str, message: str, generation: int) -> JsonObject:
    return {"type": READY, "status": status, "reason": reason, "message": message, "observedGeneration": generation}


def _message(failing: JsonObject, count: int) -> str:
    first = next(iter(unstructured.child_objects(failing, "inputs")), {})
    name = "/".join(filter(None, (unstructured.text(first, "namespace"), unstructured.text(first, "name"))))
    subject = f"{unstructured.text(first, 'resource')} {name}" if name else f"map key {unstructured.text(first, 'mapKey')}"
    return f"{count} {'input fails' if count == 1 else 'inputs fail'}; {subject}: {unstructured.text(first, 'message')}"


def _ready_in(status: JsonObject) -> JsonObject | None:
    return next((each for each in unstructured.child_objects(status, "conditions") if each.get("type") == READY), None)


def _others(status: JsonObject) -> list[JsonValue]:
    conditions = status.get("conditions")
    listed = conditions if isinstance(conditions, list) else []
    return [each for each in listed if not (is_object(each) and each.get("type") in {READY, PAUSED})]
