"""DecoratorController: objects of any kind, each with the attachments that its hook asks for."""

from dataclasses import dataclass
from typing import Final

from metaloop.common.api import fields
from metaloop.common.api.hook import Hooks, parse_hooks
from metaloop.common.api.rules import ChildRule, parse_child_rules, require_different
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Labels, Selector, parse_selector

KIND: Final = "DecoratorController"
DECORATOR_ANNOTATION: Final = "metacontroller.k8s.io/decorator-controller"
"""On an attachment: the name of the DecoratorController that attached it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetRule:
    """One resource whose objects are decorated: those that both selectors match."""

    resource: ResourceId
    label_selector: Selector
    annotation_selector: Selector
    ignore_status_changes: bool

    def selects(self, *, labels: Labels, annotations: Labels) -> bool:
        """Whether an object with these labels and annotations is decorated."""
        return self.label_selector.matches(labels) and self.annotation_selector.matches(annotations)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoratorController:
    """A DecoratorController that can be served. `raw` is the whole object, as hooks are shown it."""

    raw: JsonObject
    name: str
    uid: str
    generation: int
    resource_version: str
    targets: tuple[TargetRule, ...]
    """The rules of `spec.resources`: at least one, and each resource once."""
    children: tuple[ChildRule, ...]
    """The rules of `spec.attachments`, by the name that every kind of controller has for them."""
    hooks: Hooks
    endpoint_configs: tuple[JsonObject, ...]
    resync_period_seconds: float | None

    @property
    def id(self) -> ControllerId:
        """What the bus calls it."""
        return ControllerId(KIND, self.name)

    @property
    def finalizer(self) -> str:
        """The finalizer that it puts on the objects that it decorates."""
        return f"metacontroller.io/decoratorcontroller-{self.name}"

    def target(self, resource: ResourceId) -> TargetRule | None:
        """The rule for objects of a resource, whatever the version; None where they aren't decorated."""
        named = (resource.group, resource.resource)
        return next((rule for rule in self.targets if (rule.resource.group, rule.resource.resource) == named), None)


def parse_decorator(raw: JsonObject) -> DecoratorController:
    """The DecoratorController in `raw`. Raises InvalidSpec that names the first field it can't be served with."""
    spec = fields.object_at(raw, "spec", "")
    if spec is None:
        raise InvalidSpec("spec", "is missing")
    return DecoratorController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        targets=_target_rules(spec),
        children=parse_child_rules(spec, "attachments"),
        hooks=parse_hooks(spec, controller=unstructured.name(raw)),
        endpoint_configs=tuple(fields.objects_at(spec, "endpointConfigs", "spec")),
        resync_period_seconds=fields.positive_seconds(spec, "resyncPeriodSeconds", "spec"),
    )


def _target_rules(spec: JsonObject) -> tuple[TargetRule, ...]:
    """The rules of `spec.resources`: two for one resource could contradict each other, even where their versions differ."""
    rules = tuple(_target_rule(raw, f"spec.resources[{index}]") for index, raw in enumerate(fields.objects_at(spec, "resources", "spec")))
    if not rules:
        raise InvalidSpec("spec.resources", "must name at least one resource")
    require_different([ResourceId(rule.resource.group, rule.resource.resource) for rule in rules], "spec.resources")
    return rules


def _target_rule(raw: JsonObject, field: str) -> TargetRule:
    return TargetRule(
        resource=fields.resource_id(raw, field),
        label_selector=parse_selector(raw.get("labelSelector"), f"{field}.labelSelector"),
        annotation_selector=parse_selector(raw.get("annotationSelector"), f"{field}.annotationSelector", labels_key="matchAnnotations"),
        ignore_status_changes=fields.flag(raw, "ignoreStatusChanges", field),
    )
