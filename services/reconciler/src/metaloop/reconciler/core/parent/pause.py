"""Whether a parent is paused, and the condition of its status that says so.

The condition is added to the others, and the rest of the status stays as it is. It goes as each condition goes that the
hook does not answer: with the next status. Only the status of a composite's parent is ours to write.
"""

from typing import Final

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.instructions import is_paused
from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import Observed

CONDITION: Final = "Paused"
PAUSED_MESSAGE: Final = f"no hook is called and no child is written until the annotation {PAUSED_ANNOTATION} is taken away"


def is_sync_paused(observed: Observed) -> bool:
    """Whether the parent is paused, by itself or with all parents of its controller."""
    return is_paused(observed.parent) or is_paused(observed.controller.raw)


def supports_conditions(observed: Observed) -> bool:
    """Whether the parent has a status, and this may have conditions."""
    if not observed.info.has_status:
        return False
    return isinstance(unstructured.child_object(observed.parent, "status").get("conditions", []), list)


def with_paused_condition(parent: JsonObject, *, at: str) -> JsonObject | None:
    """`parent` with the condition that it has been paused since `at`. None if it has the condition already."""
    if has_paused_condition(parent):
        return None
    status = unstructured.child_object(parent, "status")
    conditions = status.get("conditions")
    others = [each for each in conditions if not _is_ours(each)] if isinstance(conditions, list) else []
    condition: JsonObject = {
        "type": CONDITION,
        "status": "True",
        "reason": "PausedByAnnotation",
        "message": PAUSED_MESSAGE,
        "lastTransitionTime": at,
    }
    return {**parent, "status": {**status, "conditions": [*others, condition]}}


def has_paused_condition(parent: JsonObject) -> bool:
    """Whether the parent's status has the condition that it is paused."""
    conditions = unstructured.child_object(parent, "status").get("conditions")
    ours = [each for each in conditions if _is_ours(each)] if isinstance(conditions, list) else []
    return any(is_object(each) and each.get("status") == "True" for each in ours)


def _is_ours(condition: object) -> bool:
    return isinstance(condition, dict) and condition.get("type") == CONDITION
