"""What a claim shows: the world of one unit of work, as the caches hold it now."""

from metaloop.common.job import JobKey
from metaloop.common.observation import CachedGroup, CachedObservation, Gone
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.rules.related import Related
from metaloop.watcher.core.rules.rule import Group
from metaloop.watcher.core.running import RunningControllers
from metaloop.watcher.core.subscriptions import RelatedSubscriptions


class Observer:
    """Observes units of work of running controllers."""

    def __init__(self, running: RunningControllers, caches: Caches, *, subscriptions: RelatedSubscriptions) -> None:
        self._running = running
        self._caches = caches
        self._related = Related(subscriptions)

    def observe(self, key: JobKey) -> CachedObservation | Gone:
        """The world of one unit of work; or why there is none."""
        found = self._running.find(key)
        if isinstance(found, Gone):
            return found
        instance, unit = found.instance, found.unit
        records: dict[Group, list[Record]] = {group: [] for group in instance.groups}
        for rule in instance.rules:
            for group, shown in rule.shown(unit, self._caches):
                records[group] += shown
        if key.part and not any(records.values()):
            return Gone(reason="nothing is left of this part")
        return CachedObservation(
            controller=self._running.raw(key.controller),
            parent_resource=unit.resource,
            parent=unit.parent.raw,
            part=key.part,
            children=[_group(group, records[group]) for group in instance.children],
            revisions=[record.raw for group in instance.revisions for record in records[group]],
            inputs=[_group(group, records[group]) for group in instance.inputs],
            related=self._related.shown(unit),
            summary=instance.tally.summary(unit) if instance.tally is not None else None,
        )

    def is_behind(self, key: JobKey, now: float) -> bool:
        """Whether events of a unit's world may have been missed, since a watch broke a moment ago."""
        return self._caches.is_behind(self._running.watches_of(key), now=now)


def _group(group: Group, records: list[Record]) -> CachedGroup:
    managed = {record.uid: record.managed for record in records if record.managed}
    return CachedGroup(resource=group.watch.resource, objects=[record.raw for record in records], managed=managed)
