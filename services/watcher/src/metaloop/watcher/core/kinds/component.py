"""The world of a ComponentController: parents of one resource.

Their objects may be of any kinds. A sync subscribes its parent to the kinds in its inventory; the subscriptions say
within which label they are watched.
"""

from typing import Final

from metaloop.common.api.component import KIND
from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import KINDS
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import NoStatus, ServedResources, World, declared_resources, parents_in


def _instance(controller: Controller, served: ServedResources) -> Instance | NoStatus:
    parents = parents_in(controller, served)
    if not parents[0].watch.resource.has_status:
        return NoStatus(parents[0].watch.resource.id)
    return Instance(controller=controller, parents=parents, rules=parents, children=())


COMPONENT: Final = World(kind=KINDS[KIND], required=declared_resources, instance=_instance)
