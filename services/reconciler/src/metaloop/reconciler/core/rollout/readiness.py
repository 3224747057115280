"""Decides whether a child is ready, so that a rollout may continue."""

from metaloop.common.api.rules import UPDATE_METHODS, ChildRule, StatusCheck
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured


def why_not_ready(child: JsonObject | None, rule: ChildRule) -> str:
    """Why a child is not ready, as a predicate that follows its name. Empty if it is ready.

    A child is ready if it exists, is not being deleted, and passes all status checks of its rule. If it is updated in
    place and states an observed generation, this must be the present one. Whether the child is as desired does not
    matter here.
    """
    if child is None:
        return "is missing"
    if unstructured.is_deleting(child):
        return "is being deleted"
    failed = filter(None, (_failed(check, child) for check in rule.status_checks))
    return _stale_status(child, rule) or next(failed, "")


def _stale_status(child: JsonObject, rule: ChildRule) -> str:
    status = unstructured.child_object(child, "status")
    observed, present = unstructured.integer(status, "observedGeneration"), unstructured.generation(child)
    if not UPDATE_METHODS[rule.method].waits_for_generation or not 0 < observed < present:
        return ""
    return f"has a status of generation {observed}, not yet of {present}"


def _failed(check: StatusCheck, child: JsonObject) -> str:
    conditions = unstructured.child_objects(unstructured.child_object(child, "status"), "conditions")
    condition = next((each for each in conditions if each.get("type") == check.type), None)
    if condition is None:
        return f"has no condition {check.type} yet"
    for field, expected in (("status", check.status), ("reason", check.reason)):
        found = unstructured.text(condition, field)
        if expected is not None and found != expected:
            return f"has condition {check.type} with {field} {found or 'unknown'}, not {expected}"
    return ""
