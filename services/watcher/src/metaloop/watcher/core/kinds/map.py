"""The world of a MapController: parents of one resource, the inputs that they select, and the outputs made for each."""

from typing import Final, cast

from metaloop.common.api import MAP_CONTROLLER_ANNOTATION, MAP_KEY
from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import KINDS
from metaloop.common.api.map import KIND, MapController, input_selector, map_key
from metaloop.common.errors import InvalidParent
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import (
    ClusterScopedInput,
    NoStatus,
    ServedResources,
    Unservable,
    World,
    declared_resources,
    parents_in,
)
from metaloop.watcher.core.part_counts import Output, conditions_of
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.rules.parts import Parts
from metaloop.watcher.core.rules.rule import Group
from metaloop.watcher.core.watch import Watch


def _mapping(controller: Controller) -> MapController:
    return cast("MapController", controller)  # the registry calls this world for its own kind only


def _required(controller: Controller) -> tuple[ResourceId, ...]:
    return (*declared_resources(controller), *_mapping(controller).inputs)


def _instance(controller: Controller, served: ServedResources) -> Instance | Unservable:
    mapping, selectors = _mapping(controller), Adopters(_selector_of)
    (parents,) = parents_in(controller, served, adopters=selectors)
    if not parents.watch.resource.has_status:
        return NoStatus(parents.watch.resource.id)
    wide = next((each for each in mapping.inputs if not served[each].namespaced), None)
    if wide is not None and parents.watch.resource.namespaced:
        return ClusterScopedInput(wide, parents.watch.resource.id)
    inputs = tuple(Group(Watch(served[each])) for each in mapping.inputs)
    outputs = tuple(Group(Watch(served[rule.resource])) for rule in controller.children)
    parts = Parts(
        parents=parents,
        selectors=selectors,
        inputs=inputs,
        outputs=outputs,
        part_of=map_key,
        output_of=lambda record: _output_of(record, controller.name),
        names=(_names(mapping.inputs), _names(tuple(rule.resource for rule in controller.children))),
    )
    return Instance(controller=controller, parents=(parents,), rules=(parents, parts), children=outputs, inputs=inputs, tally=parts)


def _selector_of(parent: Record) -> Selector | None:
    """What a parent selects as its inputs; None where its selector is malformed."""
    try:
        return input_selector(parent.parse())
    except InvalidParent:
        return None


def _output_of(record: Record, controller: str) -> Output | None:
    obj = record.parse()
    annotations = unstructured.annotations(obj)
    part = annotations.get(MAP_KEY, "")
    return Output(part, conditions_of(obj)) if part and annotations.get(MAP_CONTROLLER_ANNOTATION) == controller else None


def _names(resources: tuple[ResourceId, ...]) -> tuple[str, ...]:
    """The plurals of resources, with the group behind those that two resources share."""
    plurals = [each.resource for each in resources]
    return tuple(each.resource if plurals.count(each.resource) == 1 else f"{each.resource}.{each.group}" for each in resources)


MAP: Final = World(kind=KINDS[KIND], required=_required, instance=_instance)
