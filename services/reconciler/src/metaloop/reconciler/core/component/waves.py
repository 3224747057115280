"""What a pass does about the objects that are desired: wave by wave, and within a wave stage by stage.

Rules
    1. An object that exists and is not ours is adopted only where the policy allows it. Otherwise the pass fails.
    2. An object is written if its manifest changed, if its fields drifted, or if it was not written for long. It is
       not written while it is being deleted.
    3. An object that was written counts as ready as soon as its own status says so. That may be at once.
    4. The next stage begins once all objects of the stages before it are ready, and so does the next wave.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Final, Literal, TypeAlias, assert_never

from metaloop.common.api.policies import DriftDetection, UpdatePolicy
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.component.conditions import Readiness
from metaloop.reconciler.core.component.digest import ONCE
from metaloop.reconciler.core.component.drift import drifted_field
from metaloop.reconciler.core.component.identity import Marks, ObjectKey
from metaloop.reconciler.core.component.inventory import SETTLED, Item, Phase
from metaloop.reconciler.core.component.managed_types import ManagedType, is_managed
from metaloop.reconciler.core.component.order import API_SERVICE, GroupKind, apply_priority, grouped
from metaloop.reconciler.core.component.readiness import readiness_of
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.model import ApplyChild, ChildWrite, CreateChild, DeleteChild, UpdateChild
from metaloop.reconciler.errors import NameTaken

Stage: TypeAlias = Literal["regular", "late", "managed"]
STAGES: Final[tuple[Stage, ...]] = ("regular", "late", "managed")

CREATED: Final = "it does not exist"
NOT_WRITTEN_FOR_LONG: Final = "it was not written for long"
ADOPTED: Final = "it is adopted"
MERGING: Final[frozenset[UpdatePolicy]] = frozenset({"SsaMerge", "SsaOverride"})
"""The policies with which lists are merged by the API server: others may have added elements."""
_PURGED: Final[frozenset[Phase]] = frozenset({"ScheduledForCompletion", "Completing", "Completed"})
"""The phases of an object that served its purpose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the decisions about all objects of a component depend on."""

    marks: Marks
    now: datetime
    drift_detection: DriftDetection = "Fields"
    managed_types: tuple[ManagedType, ...] = ()
    """Those that objects of the component make known, and those that its controller lists."""

    @property
    def timestamp(self) -> str:
        """The present time as Kubernetes writes it."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """The objects of one apply order."""

    order: int
    stages: Mapping[Stage, tuple[Target, ...]]
    """Each in the order in which it is applied."""


def waves_of(targets: Sequence[Target], types: Sequence[ManagedType]) -> Iterator[Wave]:
    """The waves, in the order in which they are applied."""
    for order, members in grouped(targets, lambda target: target.settings.apply_order):
        stages: dict[Stage, list[Target]] = {stage: [] for stage in STAGES}
        for target in members:
            stages[stage_of(target, types)].append(target)
        yield Wave(order=order, stages={stage: tuple(sorted(found, key=priority_of)) for stage, found in stages.items()})


def stage_of(target: Target, types: Sequence[ManagedType]) -> Stage:
    """The stage of its wave in which an object is applied."""
    if is_managed(types, group=target.key.group, version=target.version, kind=target.key.kind):
        return "managed"
    return "late" if GroupKind(target.key.group, target.key.kind) == API_SERVICE else "regular"


def priority_of(target: Target) -> int:
    """The place of an object within its stage."""
    return apply_priority(target.key.group, target.key.kind)


# -- one object --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectPlan:
    """What to do about one object, and what its item is once that is done. No action: it is as it should be."""

    target: Target
    item: Item
    action: ChildWrite | DeleteChild | None = None
    message: str = ""
    """Why the object is not ready, if it is not."""
    live: JsonObject | None = None
    """The object, if its readiness was judged by what it is now."""
    unjudged: Item | None = None
    """The item before that."""

    @property
    def is_ready(self) -> bool:
        """Whether nothing has to be done or awaited."""
        return self.action is None and self.item.phase in SETTLED and self.item.status in {"Current", ""}


def planned(target: Target, item: Item, live: JsonObject | None, rules: Rules) -> ObjectPlan:
    """What to do about an object that is desired. Raises NameTaken if it is another's, and may not be adopted."""
    if item.phase in _PURGED:
        return ObjectPlan(target=target, item=item)
    if live is None:
        return _written(target, item, None, rules, reason=CREATED)
    if unstructured.is_deleting(live):
        return ObjectPlan(target=target, item=replace(item, status="Terminating"), message="it is being deleted")
    reason = _reason_to_adopt(target, live, rules) or reason_to_write(target, item, live, rules)
    return _written(target, item, live, rules, reason=reason) if reason else observed(target, item, live, rules)


def observed(target: Target, item: Item, live: JsonObject, rules: Rules) -> ObjectPlan:
    """The item of an object that is left as it is, and how it is."""
    readiness = readiness_of(live, hints=target.settings.hints, now=rules.now)
    return judged(ObjectPlan(target=target, item=item, live=live, unjudged=item), readiness)


def judged(plan: ObjectPlan, readiness: Readiness) -> ObjectPlan:
    """A plan for an object that is left as it is, once it is known how it is."""
    item = plan.unjudged or plan.item
    # The phase stays if the object was ready before: an object that ceases to be ready was applied nevertheless.
    phase = "Ready" if readiness.is_ready else item.phase
    is_as_before = (item.phase, item.status) == (phase, readiness.status)
    after = item if is_as_before else replace(item, phase=phase, status=readiness.status)
    return replace(plan, item=after, message=readiness.message)


def after_write(plan: ObjectPlan, written: JsonObject | None, rules: Rules) -> ObjectPlan:
    """What is left to do about an object once its action was carried out. `written` is the object as it is now."""
    if written is None or isinstance(plan.action, DeleteChild):
        return ObjectPlan(target=plan.target, item=plan.item, message="it is made again")
    return observed(plan.target, plan.item, written, rules)


def may_adopt(target: Target, live: JsonObject, marks: Marks) -> bool:
    """Whether the policy of an object allows that it becomes ours."""
    match marks.ownership(live), target.settings.adoption:
        case ("ours", _) | (_, "Always") | ("nobody's", "IfUnowned"):
            return True
        case _:
            return False


def _reason_to_adopt(target: Target, live: JsonObject, rules: Rules) -> str:
    whose = rules.marks.ownership(live)
    if whose == "ours":
        return ""
    if not may_adopt(target, live, rules.marks):
        raise NameTaken(f"{target.key} exists and is {whose}: its adoption policy is {target.settings.adoption}")
    return ADOPTED


def reason_to_write(target: Target, item: Item, live: JsonObject, rules: Rules) -> str:
    """Why a live object has to be written. Empty if it does not have to."""
    if rules.marks.digest_of(live) != target.digest:
        return "its manifest changed"
    if target.digest == ONCE:
        return ""
    if rules.drift_detection == "Fields":
        field = drifted_field(target.obj, live, is_merged=target.settings.update in MERGING)
        if field:
            return f"its field {field} was changed"
    return NOT_WRITTEN_FOR_LONG if seconds_to_reapply(target, item, rules.now) <= 0 else ""


def seconds_to_reapply(target: Target, item: Item, now: datetime) -> float:
    """In how many seconds an object is due to be written again although it looks up to date. Infinite for never."""
    # To make an object again that is as it should be would help nobody.
    if target.digest == ONCE or target.settings.update == "Recreate" or item.phase in _PURGED:
        return inf
    age = item.applied_seconds_ago(now)
    return target.settings.reapply_seconds - age if age is not None else 0.0


def _written(target: Target, item: Item, live: JsonObject | None, rules: Rules, *, reason: str) -> ObjectPlan:
    if target.info is None:
        return ObjectPlan(target=target, item=replace(item, status="InProgress"), message="its kind is not served yet")
    phase = "Creating" if live is None else "Updating"
    after = replace(item, phase=phase, status="InProgress", last_applied_at=rules.timestamp)
    return ObjectPlan(
        target=target, item=after, action=_action(target, target.info, live, rules.marks, reason), message="it was just written"
    )


def _action(target: Target, info: ResourceInfo, live: JsonObject | None, marks: Marks, reason: str) -> ChildWrite | DeleteChild:
    obj = marks.on(target.obj, digest=target.digest)
    match target.settings.update:
        case "SsaMerge":
            return ApplyChild(info=info, obj=obj, reason=reason, observed=live, folded_managers=())
        case "SsaOverride":
            folded = target.settings.overridden_managers
            return ApplyChild(info=info, obj=obj, reason=reason, observed=live, folded_managers=folded)
        case "Recreate" if live is not None and reason != ADOPTED:
            return DeleteChild(info=info, obj=live, reason=reason)
        case "Replace" | "Recreate":
            if live is None:
                return CreateChild(info=info, obj=obj, reason=reason)
            return UpdateChild(info=info, obj=_in_place_of(live, obj), reason=reason, observed=live)
        case policy:
            assert_never(policy)


def _in_place_of(live: JsonObject, obj: JsonObject) -> JsonObject:
    """`obj` as the replacement of a live object: of the same UID and version, and with the finalizers of both."""
    metadata = unstructured.metadata(obj)
    finalizers: list[JsonValue] = [*dict.fromkeys((*unstructured.finalizers(live), *unstructured.finalizers(obj)))]
    version = {"uid": unstructured.uid(live), "resourceVersion": unstructured.resource_version(live)}
    return {**obj, "metadata": {**metadata, **version, **({"finalizers": finalizers} if finalizers else {})}}


# -- purges ------------------------------------------------------------------------------------------------------------


def due_purges(targets: Sequence[Target], items: Mapping[ObjectKey, Item], *, wave: int, is_last: bool) -> list[ObjectKey]:
    """The objects that are to be purged now that a wave is ready. After the last wave, none is left over.

    `targets` are those of this wave and of the waves before it.
    """
    return [
        target.key
        for target in targets
        if target.settings.purge_order is not None
        and (is_last or target.settings.purge_order <= wave)
        and items[target.key].phase not in _PURGED
    ]
