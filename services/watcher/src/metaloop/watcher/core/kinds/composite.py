"""The world of a CompositeController: parents of one resource, children that they own or may adopt, and revisions."""

from functools import partial
from typing import Final, cast

from metaloop.common.api.composite import KIND, CompositeController, child_selector
from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import KINDS
from metaloop.common.api.revision import REVISIONS, revision_namespace, revision_selector
from metaloop.common.errors import InvalidParent
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Selector
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import NoStatus, ServedResources, World, declared_resources, parents_in
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.rules.orphans import Orphans
from metaloop.watcher.core.rules.owned import Owned
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.rules.rule import Group, Rule
from metaloop.watcher.core.watch import Watch


def _composite(controller: Controller) -> CompositeController:
    return cast("CompositeController", controller)  # the registry calls this world for its own kind only


def _required(controller: Controller) -> tuple[ResourceId, ...]:
    return (*declared_resources(controller), *((REVISIONS.id,) if _composite(controller).rolls else ()))


def _instance(controller: Controller, served: ServedResources) -> Instance | NoStatus:
    composite = _composite(controller)
    adopters = Adopters(partial(_selector_of, composite))
    (parents,) = parents_in(controller, served, adopters=adopters)
    if not parents.watch.resource.has_status:
        return NoStatus(parents.watch.resource.id)
    children = tuple(Group(Watch(served[rule.resource])) for rule in controller.children)
    revisions = (Group(Watch(served[REVISIONS.id])),) if composite.rolls else ()
    return Instance(
        controller=controller,
        parents=(parents,),
        children=children,
        revisions=revisions,
        rules=(
            parents,
            *(rule for group in children for rule in _child_rules(parents, adopters, group)),
            *(rule for group in revisions for rule in _revision_rules(parents, adopters, group)),
        ),
    )


def _child_rules(parents: Parents, adopters: Adopters, group: Group) -> tuple[Rule, ...]:
    return Owned(parents=(parents,), group=group), Orphans(parents=parents, adopters=adopters, group=group)


def _revision_rules(parents: Parents, adopters: Adopters, group: Group) -> tuple[Rule, ...]:
    return (
        Owned(parents=(parents,), group=group, namespace_of=revision_namespace),
        Orphans(
            parents=parents,
            adopters=adopters,
            group=group,
            namespace_of=revision_namespace,
            selector_of=partial(revision_selector, parents=parents.watch.resource.id),
        ),
    )


def _selector_of(controller: CompositeController, parent: Record) -> Selector | None:
    """The labels of a parent's children; None for a parent without a usable selector: it adopts nothing."""
    try:
        return child_selector(controller, parent.parse())
    except InvalidParent:
        return None


COMPOSITE: Final = World(kind=KINDS[KIND], required=_required, instance=_instance)
