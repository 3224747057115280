"""DecoratorController: adds attachments to objects of any kind."""

from dataclasses import dataclass
from typing import ClassVar, Final

from metaloop.common.api import fields
from metaloop.common.api.controller import Controller, ParentRule, spec_of
from metaloop.common.api.hook import HookKeys, parse_hooks
from metaloop.common.api.rules import parse_child_rules, require_different
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import parse_selector

KIND: Final = "DecoratorController"
KEYS: Final = HookKeys(parent="object", children="attachments", edits_metadata=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoratorController(Controller):
    """A DecoratorController that can be served: its parents are `spec.resources`, its children `spec.attachments`."""

    kind: ClassVar[str] = KIND


def parse_decorator(raw: JsonObject) -> DecoratorController:
    """The DecoratorController in `raw`. Raises InvalidSpec with the first invalid field."""
    spec = spec_of(raw)
    return DecoratorController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        parents=_parent_rules(spec),
        children=parse_child_rules(spec, "attachments"),
        hooks=parse_hooks(spec, controller=unstructured.name(raw)),
        endpoint_configs=tuple(fields.objects_at(spec, "endpointConfigs", "spec")),
        resync_period_seconds=fields.positive_seconds(spec, "resyncPeriodSeconds", "spec"),
    )


def _parent_rules(spec: JsonObject) -> tuple[ParentRule, ...]:
    """The rules of `spec.resources`. Two rules for one resource, even in two versions, could contradict each other."""
    rules = tuple(_parent_rule(raw, f"spec.resources[{index}]") for index, raw in enumerate(fields.objects_at(spec, "resources", "spec")))
    if not rules:
        raise InvalidSpec("spec.resources", "must name at least one resource")
    require_different([ResourceId(rule.resource.group, rule.resource.resource) for rule in rules], "spec.resources")
    return rules


def _parent_rule(raw: JsonObject, field: str) -> ParentRule:
    return ParentRule(
        resource=fields.resource_id(raw, field),
        labels=parse_selector(raw.get("labelSelector"), f"{field}.labelSelector"),
        annotations=parse_selector(raw.get("annotationSelector"), f"{field}.annotationSelector", labels_key="matchAnnotations"),
        ignore_status_changes=fields.flag(raw, "ignoreStatusChanges", field),
    )
