"""CompositeController: one parent resource, its child resources and its hooks."""

from dataclasses import dataclass
from typing import ClassVar, Final

from metaloop.common.api import fields
from metaloop.common.api.controller import Controller, ParentRule, spec_of
from metaloop.common.api.hook import HookKeys, parse_hooks
from metaloop.common.api.rules import parse_child_rules
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.selector import Requirement, Selector, parse_selector

KIND: Final = "CompositeController"
KEYS: Final = HookKeys(parent="parent", children="children", edits_metadata=False)
GENERATED_LABEL: Final = "controller-uid"
"""The label with which `generateSelector` marks and selects the children of a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeController(Controller):
    """A CompositeController that can be served. It has one parent rule."""

    kind: ClassVar[str] = KIND

    generate_selector: bool
    revision_field_paths: tuple[str, ...]
    """The fields of a parent that its revisions record."""

    @property
    def rolls(self) -> bool:
        """Whether any of its children are rolled out from revision to revision of their parent."""
        return any(rule.rolls for rule in self.children)


def parse_composite(raw: JsonObject) -> CompositeController:
    """The CompositeController in `raw`. Raises InvalidSpec with the first invalid field."""
    spec = spec_of(raw)
    parent, field = fields.object_at(spec, "parentResource", "spec"), "spec.parentResource"
    if parent is None:
        raise InvalidSpec(field, "is missing")
    history = fields.object_at(parent, "revisionHistory", field) or {}
    return CompositeController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        parents=(_parent_rule(parent, field),),
        revision_field_paths=fields.texts_at(history, "fieldPaths", f"{field}.revisionHistory") or ("spec",),
        children=parse_child_rules(spec, "childResources"),
        hooks=parse_hooks(spec, controller=unstructured.name(raw)),
        endpoint_configs=tuple(fields.objects_at(spec, "endpointConfigs", "spec")),
        resync_period_seconds=fields.positive_seconds(spec, "resyncPeriodSeconds", "spec"),
        generate_selector=fields.flag(spec, "generateSelector", "spec"),
    )


def _parent_rule(raw: JsonObject, field: str) -> ParentRule:
    return ParentRule(
        resource=fields.resource_id(raw, field),
        labels=parse_selector(raw.get("labelSelector"), f"{field}.labelSelector"),
        ignore_status_changes=fields.flag(raw, "ignoreStatusChanges", field),
    )


def child_selector(controller: CompositeController, parent: JsonObject) -> Selector:
    """The selector of a parent's children: its own `spec.selector`, or the generated label.

    Raises InvalidParent if the parent's selector is missing, empty or malformed.
    """
    if controller.generate_selector:
        return Selector((Requirement(GENERATED_LABEL, "In", (unstructured.uid(parent),)),))
    raw = unstructured.child_object(parent, "spec").get("selector")
    try:
        selector = parse_selector(raw, "spec.selector")
    except InvalidSpec as error:
        raise InvalidParent(error.field, str(error).removeprefix(f"{error.field}: ")) from error
    if selector.is_empty:
        raise InvalidParent(
            "spec.selector", "is missing or empty: it would select every object (or set generateSelector on the controller)"
        )
    return selector
