"""The world of a DecoratorController: the parents of any number of resources, and the attachments that they own."""

from typing import Final

from metaloop.common.api.controller import Controller
from metaloop.common.api.decorator import KIND
from metaloop.common.api.kinds import KINDS
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import ServedResources, World, declared_resources, parents_in
from metaloop.watcher.core.rules.owned import Owned
from metaloop.watcher.core.rules.rule import Group
from metaloop.watcher.core.watch import Watch


def _instance(controller: Controller, served: ServedResources) -> Instance:
    parents = parents_in(controller, served)
    groups = tuple(Group(Watch(served[rule.resource])) for rule in controller.children)
    rules = (*parents, *(Owned(parents=parents, group=group) for group in groups))
    return Instance(controller=controller, parents=parents, rules=rules, children=groups)


DECORATOR: Final = World(kind=KINDS[KIND], required=declared_resources, instance=_instance)
