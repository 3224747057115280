"""What keeps a child from being happy, so that a rollout waits for it."""

from metaloop.common.api.rules import UPDATE_METHODS, ChildRule, StatusCheck
from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured


def why_not_ready(there: JsonObject | None, rule: ChildRule) -> str:
    """What is not well with a child, as the end of a sentence that begins with its name; empty where all is well.

    All is well with one that is there to stay, whose status is of its present generation (where it is updated in place, and tells), and that passes all
    status checks of its rule. Whether it is as desired is another question.
    """
    if there is None:
        return "is missing"
    if unstructured.is_deleting(there):
        return "is being deleted"
    failed = filter(None, (_failed(check, there) for check in rule.status_checks))
    return _stale_status(there, rule) or next(failed, "")


def _stale_status(there: JsonObject, rule: ChildRule) -> str:
    seen, present = unstructured.integer(unstructured.child_object(there, "status"), "observedGeneration"), unstructured.generation(there)
    if not UPDATE_METHODS[rule.method].waits_for_generation or not 0 < seen < present:
        return ""
    return f"has a status of generation {seen}, not yet of {present}"


def _failed(check: StatusCheck, there: JsonObject) -> str:
    conditions = unstructured.child_object(there, "status").get("conditions")
    entries = [entry for entry in conditions if is_object(entry)] if is_array(conditions) else []
    condition = next((entry for entry in entries if entry.get("type") == check.type), None)
    if condition is None:
        return f"has no condition {check.type} yet"
    for field, wanted in (("status", check.status), ("reason", check.reason)):
        found = unstructured.text(condition, field)
        if wanted is not None and found != wanted:
            return f"has condition {check.type} with {field} {found or 'unknown'}, not {wanted}"
    return ""
