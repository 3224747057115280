"""Asks a webhook how objects are whose kinds no rule knows.

    {"objects": [...]}  ─▶  {"statuses": [{"status": "Current"}, {"status": "InProgress", "message": "2 of 3"}]}

There is one status for each object, in their order. An object that is being deleted, or that is to be written first, is
not asked about.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast

from metaloop.common.api.component import StatusHook
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonValue, dumps, is_object
from metaloop.reconciler.core.component.conditions import Readiness, Status
from metaloop.reconciler.core.component.waves import ObjectPlan, judged
from metaloop.reconciler.core.hooks.body import body_of
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.steps import Steps, call_hook

_FIELDS: Final = frozenset({"statuses"})
_STATUSES: Final[tuple[Status, ...]] = ("Current", "InProgress", "Failed")


def judge(plans: Sequence[ObjectPlan], hook: StatusHook | None, observed: Observed) -> Steps[Sequence[ObjectPlan]]:
    """The plans, with what the hook says of the objects of its kinds."""
    if hook is None:
        return plans
    asked = {id(plan): plan for plan in plans if plan.live is not None and hook.covers(plan.target.key.group, plan.target.key.kind)}
    if not asked:
        return plans
    request = {"controller": observed.controller.shown, "parent": observed.parent, "objects": [each.live for each in asked.values()]}
    [wire] = yield from call_hook(observed, hook.hook, {"": dumps(request)})
    said = dict(zip(asked, readiness_in(wire, len(asked), is_strict=hook.hook.strict), strict=True))
    return [judged(plan, said[id(plan)]) if id(plan) in said else plan for plan in plans]


def readiness_in(wire: bytes, count: int, *, is_strict: bool) -> list[Readiness]:
    """How `count` objects are, as an answer says. Raises InvalidAnswer."""
    raw = body_of(wire, keys=_FIELDS, is_strict=is_strict).fields.get("statuses")
    if not isinstance(raw, list) or len(raw) != count:
        raise InvalidAnswer("statuses", f"must be a list of {count}: one status for each object, in their order")
    return [_readiness(each, f"statuses[{index}]") for index, each in enumerate(raw)]


def _readiness(raw: JsonValue, field: str) -> Readiness:
    status, message = (raw.get("status"), raw.get("message") or "") if is_object(raw) else (None, "")
    if status not in _STATUSES:
        raise InvalidAnswer(f"{field}.status", f"must be one of {', '.join(_STATUSES)}")
    if not isinstance(message, str):
        raise InvalidAnswer(f"{field}.message", "must be a string")
    found = Readiness(cast("Status", status), message)
    return found if found.is_ready or message else replace(found, message=f"the status hook says {status}")
