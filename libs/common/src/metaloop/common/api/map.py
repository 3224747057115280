"""MapController: for every input object that there is, the outputs that its hook maps it to.

A parent selects inputs by its own `spec.selector`. Each input of a parent is a part of the parent's work, named by its
map key.
"""

import re
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar, Final

from metaloop.common.api import fields
from metaloop.common.api.controller import Controller, ParentRule, spec_of
from metaloop.common.api.hook import Hook, HookKeys, HookName, Hooks, parse_hook
from metaloop.common.api.rules import PLAIN_METHODS, ChildRule, parse_child_rules, require_different
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Selector, parse_selector

KIND: Final = "MapController"
KEYS: Final = HookKeys(parent="parent", children="outputs", edits_metadata=False, states_parent=False)

_SPEC_FIELDS: Final = ("parentResource", "inputResources", "outputResources", "resyncPeriodSeconds", "hooks", "endpointConfigs")
_UNSUPPORTED_HOOKS: Final = {
    "sync": "is not a hook of a MapController: its hooks are map and tombstone",
    "finalize": "is not supported: the outputs of a parent are deleted with it, and no hook is called for the parent as a whole",
    "customize": "is not supported: a map hook is shown one input and its outputs; list the resource in spec.inputResources",
}
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_DIGEST_BYTES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MapController(Controller):
    """A MapController that can be served. It has one parent rule; its children are `spec.outputResources`."""

    kind: ClassVar[str] = KIND

    inputs: tuple[ResourceId, ...]
    """At least one; each resource at most once."""
    map_hook: Hook
    tombstone_hook: Hook | None
    """None if the outputs of an input are deleted once the input is gone."""


def parse_map(raw: JsonObject) -> MapController:
    """The MapController in `raw`. Raises InvalidSpec with the first invalid field."""
    spec = spec_of(raw)
    fields.require_known(spec, "spec", known=_SPEC_FIELDS)
    parent = _parent_rule(spec)
    hooks = _hooks_in(spec)
    return MapController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        parents=(parent,),
        inputs=_inputs_in(spec),
        children=_outputs_in(spec, parents=parent.resource),
        hooks=Hooks(sync=None, finalize=None, customize=None),
        map_hook=_required_hook(hooks, "map"),
        tombstone_hook=_required_hook(hooks, "tombstone") if hooks.get("tombstone") is not None else None,
        endpoint_configs=tuple(fields.objects_at(spec, "endpointConfigs", "spec")),
        resync_period_seconds=fields.positive_seconds(spec, "resyncPeriodSeconds", "spec"),
    )


def map_key(uid: str) -> str:
    """The map key of the input with this UID: the UID itself, or a digest of one that is no valid label value."""
    return uid if _LABEL_VALUE.fullmatch(uid) else blake2b(uid.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def input_selector(parent: JsonObject) -> Selector:
    """The selector of a parent's inputs. An empty or missing one selects all. Raises InvalidParent."""
    try:
        return parse_selector(unstructured.child_object(parent, "spec").get("selector"), "spec.selector")
    except InvalidSpec as error:
        raise InvalidParent(error.field, str(error).removeprefix(f"{error.field}: ")) from error


def _parent_rule(spec: JsonObject) -> ParentRule:
    parent, field = fields.object_at(spec, "parentResource", "spec"), "spec.parentResource"
    if parent is None:
        raise InvalidSpec(field, "is missing")
    fields.require_known(parent, field, known=("apiVersion", "resource", "labelSelector"))
    labels = parse_selector(parent.get("labelSelector"), f"{field}.labelSelector")
    return ParentRule(resource=fields.resource_id(parent, field), labels=labels, ignore_status_changes=True)


def _inputs_in(spec: JsonObject) -> tuple[ResourceId, ...]:
    listed = fields.objects_at(spec, "inputResources", "spec")
    if not listed:
        raise InvalidSpec("spec.inputResources", "must name at least one resource")
    for index, raw in enumerate(listed):
        fields.require_known(raw, f"spec.inputResources[{index}]", known=("apiVersion", "resource"))
    inputs = tuple(fields.resource_id(raw, f"spec.inputResources[{index}]") for index, raw in enumerate(listed))
    require_different([ResourceId(each.group, each.resource) for each in inputs], "spec.inputResources")
    return inputs


def _outputs_in(spec: JsonObject, *, parents: ResourceId) -> tuple[ChildRule, ...]:
    outputs = parse_child_rules(spec, "outputResources", methods=PLAIN_METHODS)
    if not outputs:
        raise InvalidSpec("spec.outputResources", "must name at least one resource")
    for index, rule in enumerate(outputs):
        if (rule.resource.group, rule.resource.resource) == (parents.group, parents.resource):
            raise InvalidSpec(f"spec.outputResources[{index}]", "is the parent resource: each output would be a parent with outputs")
    return outputs


def _hooks_in(spec: JsonObject) -> JsonObject:
    hooks = fields.object_at(spec, "hooks", "spec")
    if not hooks:
        raise InvalidSpec("spec.hooks", "no hooks defined")
    for name, problem in _UNSUPPORTED_HOOKS.items():
        if name in hooks:
            raise InvalidSpec(f"spec.hooks.{name}", problem)
    fields.require_known(hooks, "spec.hooks", known=("map", "tombstone"))
    return hooks


def _required_hook(hooks: JsonObject, name: HookName) -> Hook:
    hook = parse_hook(hooks, name)
    if hook is None:
        raise InvalidSpec(f"spec.hooks.{name}", "is missing")
    if hook.webhook is None:
        raise InvalidSpec(f"spec.hooks.{name}.webhook", "is missing: there is no hook to call")
    return hook
