"""CompositeController: one parent resource, its child resources, and the hooks that relate them."""

from dataclasses import dataclass
from typing import Final

from metaloop.common.api import fields
from metaloop.common.api.hook import Hooks, parse_hooks
from metaloop.common.api.rules import ChildRule, parse_child_rules
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Selector, parse_selector

KIND: Final = "CompositeController"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentRule:
    """Which objects are parents."""

    resource: ResourceId
    selector: Selector
    ignore_status_changes: bool
    revision_field_paths: tuple[str, ...]


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
        children=parse_child_rules(spec, "childResources"),
        hooks=parse_hooks(spec, controller=unstructured.name(raw)),
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
