"""CompositeController: one parent resource, its child resources, and the hooks that relate them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from metaloop.common.api import fields
from metaloop.common.api.hook import Hooks, parse_hooks
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Selector, parse_selector

KIND = "CompositeController"

UpdateMethod: TypeAlias = Literal["OnDelete", "Recreate", "InPlace", "RollingRecreate", "RollingInPlace"]
UPDATE_METHODS: tuple[UpdateMethod, ...] = ("OnDelete", "Recreate", "InPlace", "RollingRecreate", "RollingInPlace")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCheck:
    """A condition that an updated child must show before the next one is updated; None compares with anything."""

    type: str
    status: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentRule:
    """Which objects are parents."""

    resource: ResourceId
    selector: Selector
    ignore_status_changes: bool
    revision_field_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRule:
    """One resource of children, and how those that differ from what is desired are updated."""

    resource: ResourceId
    method: UpdateMethod
    status_checks: tuple[StatusCheck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeController:
    """A CompositeController that can be served. `raw` is the whole object, as hooks are shown it."""

    raw: JsonObject
    name: str
    uid: str
    generation: int
    resource_version: str
    parent: ParentRule
    children: tuple[ChildRule, ...]
    hooks: Hooks
    endpoint_configs: tuple[JsonObject, ...]
    resync_period_seconds: float | None
    generate_selector: bool

    @property
    def id(self) -> ControllerId:
        """What the bus calls it."""
        return ControllerId(KIND, self.name)

    @property
    def finalizer(self) -> str:
        """The finalizer that it puts on its parents."""
        return f"metacontroller.io/compositecontroller-{self.name}"


def parse_composite(raw: JsonObject) -> CompositeController:
    """The CompositeController in `raw`. Raises InvalidSpec that names the first field it can't be served with."""
    spec = fields.object_at(raw, "spec", "")
    if spec is None:
        raise InvalidSpec("spec", "is missing")
    return CompositeController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        parent=_parent_rule(spec),
        children=_child_rules(spec),
        hooks=parse_hooks(spec),
        endpoint_configs=tuple(fields.objects_at(spec, "endpointConfigs", "spec")),
        resync_period_seconds=fields.positive_seconds(spec, "resyncPeriodSeconds", "spec"),
        generate_selector=fields.flag(spec, "generateSelector", "spec"),
    )


def _parent_rule(spec: JsonObject) -> ParentRule:
    raw, field = fields.object_at(spec, "parentResource", "spec"), "spec.parentResource"
    if raw is None:
        raise InvalidSpec(field, "is missing")
    history = fields.object_at(raw, "revisionHistory", field) or {}
    return ParentRule(
        resource=fields.resource_id(raw, field),
        selector=parse_selector(raw.get("labelSelector"), f"{field}.labelSelector"),
        ignore_status_changes=fields.flag(raw, "ignoreStatusChanges", field),
        revision_field_paths=fields.texts_at(history, "fieldPaths", f"{field}.revisionHistory") or ("spec",),
    )


def _child_rules(spec: JsonObject) -> tuple[ChildRule, ...]:
    rules = [_child_rule(raw, f"spec.childResources[{i}]") for i, raw in enumerate(fields.objects_at(spec, "childResources", "spec"))]
    seen: set[ResourceId] = set()
    for index, rule in enumerate(rules):
        if rule.resource in seen:
            raise InvalidSpec(f"spec.childResources[{index}]", f"{rule.resource} is listed twice")
        seen.add(rule.resource)
    return tuple(rules)


def _child_rule(raw: JsonObject, field: str) -> ChildRule:
    strategy = fields.object_at(raw, "updateStrategy", field) or {}
    field_of_strategy = f"{field}.updateStrategy"
    checks = fields.object_at(strategy, "statusChecks", field_of_strategy) or {}
    return ChildRule(
        resource=fields.resource_id(raw, field),
        method=cast("UpdateMethod", fields.one_of(strategy, "method", field_of_strategy, choices=UPDATE_METHODS, default="OnDelete")),
        status_checks=tuple(
            _status_check(check, f"{field_of_strategy}.statusChecks.conditions[{index}]")
            for index, check in enumerate(fields.objects_at(checks, "conditions", f"{field_of_strategy}.statusChecks"))
        ),
    )


def _status_check(raw: JsonObject, field: str) -> StatusCheck:
    return StatusCheck(
        type=fields.required_text(raw, "type", field),
        status=unstructured.text(raw, "status") or None,
        reason=unstructured.text(raw, "reason") or None,
    )
