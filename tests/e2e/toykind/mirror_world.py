"""The world of a MirrorController: its parents, the ConfigMaps that name one of them, and their mirrors."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mirror_spec import CONFIG_MAPS, MIRROR_KIND, PARENT_LABEL, SOURCE_LABEL

from metaloop.common.api.controller import Controller
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import ServedResources, World, declared_resources, parents_in
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.rules.rule import Group, Shown, Touched, Unit
from metaloop.watcher.core.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sources:
    """The ConfigMaps that name a parent: each is a part of its work."""

    parents: Parents
    group: Group

    @property
    def watches(self) -> Sequence[Watch]:
        """ConfigMaps; and parents, since a parent's appearance concerns all of its parts."""
        return (self.group.watch, self.parents.watch)

    def concerned(self, change: Change, caches: Caches) -> Iterator[Touched]:
        """The part of a ConfigMap that changed, before and after; all parts of a parent that changed."""
        if change.watch.id == self.parents.watch.id:
            parent = self.parents.find(change.key, caches)
            for source in _sources(parent, caches, self.group) if parent is not None else ():
                yield Touched(self.parents.key(change.key, source.uid))
            return
        for record in (change.old, change.new):
            key = (change.key[0], record.labels.get(PARENT_LABEL, "")) if record is not None else ("", "")
            if record is not None and self.parents.find(key, caches) is not None:
                yield Touched(self.parents.key(key, record.uid))

    def shown(self, unit: Unit, caches: Caches) -> Sequence[Shown]:
        """The ConfigMap of the part, if there is one."""
        return (Shown(self.group, [each for each in _sources(unit.parent, caches, self.group) if each.uid == unit.key.part]),)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mirrors:
    """The mirrors that a parent controls: each belongs to the part of its source."""

    parents: Parents
    group: Group

    @property
    def watches(self) -> Sequence[Watch]:
        """ConfigMaps."""
        return (self.group.watch,)

    def concerned(self, change: Change, caches: Caches) -> Iterator[Touched]:
        """The part whose mirror changed."""
        for record in (change.old, change.new):
            if record is None or record.owner is None:
                continue
            key = (change.key[0], record.owner.name)
            parent = self.parents.find(key, caches)
            if parent is not None and parent.uid == record.owner.uid and SOURCE_LABEL in record.labels:
                yield Touched(self.parents.key(key, record.labels[SOURCE_LABEL]))

    def shown(self, unit: Unit, caches: Caches) -> Sequence[Shown]:
        """The mirrors of the part's source."""
        owned = caches[self.group.watch.id].owned_by(unit.parent.uid)
        return (Shown(self.group, [each for each in owned if each.labels.get(SOURCE_LABEL) == unit.key.part]),)


def _sources(parent: Record, caches: Caches, group: Group) -> Iterator[Record]:
    namespace, name = parent.key
    for record in caches[group.watch.id].objects.values():
        if record.key[0] == namespace and record.labels.get(PARENT_LABEL) == name:
            yield record


def _instance(controller: Controller, served: ServedResources) -> Instance:
    (parents,) = parents_in(controller, served)
    config_maps = Watch(served[CONFIG_MAPS])
    sources, mirrors = Group(config_maps), Group(config_maps)
    return Instance(
        controller=controller,
        parents=(parents,),
        rules=(parents, Sources(parents=parents, group=sources), Mirrors(parents=parents, group=mirrors)),
        children=(mirrors,),
        inputs=(sources,),
    )


MIRROR_WORLD: Final = World(kind=MIRROR_KIND, required=declared_resources, instance=_instance)
