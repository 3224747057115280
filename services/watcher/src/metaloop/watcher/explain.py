"""Says why a parent was synced last, how that ended, and what it waits for: the answer to `metaloop explain`."""

from collections.abc import Iterator
from dataclasses import dataclass

from metaloop.common.api.instructions import is_paused
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, JsonValue, loads
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.entry import Entry, Purpose
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.last_syncs import LastSync
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.running import RunningControllers
from metaloop.watcher.workqueue import WorkQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentName:
    """Which parent somebody asks about."""

    kind: str
    """Its kind or its resource, in any case."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Explains parents of running controllers."""

    running: RunningControllers
    caches: Caches
    queue: WorkQueue

    def explain(self, asked: ParentName) -> list[JsonValue]:
        """What is known of a parent, for each running controller whose parents are of its kind."""
        return [
            self._of(instance, parents, asked)
            for instance in self.running
            for parents in instance.parents
            if asked.kind.lower() in {parents.watch.resource.kind.lower(), parents.watch.resource.resource}
        ]

    def _of(self, instance: Instance, parents: Parents, asked: ParentName) -> JsonObject:
        info, controller = parents.watch.resource, instance.controller.id
        key = JobKey(controller, info.id, asked.namespace if info.namespaced else "", asked.name)
        record = self.caches.lookup(parents.watch.id, (key.namespace, key.name))
        return {
            "controller": str(controller),
            "parent": str(key),
            "exists": record is not None,
            "selected": record is not None and parents.serves(record),
            "parentIsPaused": record is not None and is_paused(_object(record)),
            "controllerIsPaused": is_paused(loads(self.running.raw(controller))),
            "watchProblem": self.caches.problem(parents.watch.id),
            "resyncSeconds": instance.controller.resync_period_seconds,
            "units": [*self._units(key)],
        }

    def _units(self, parent: JobKey) -> Iterator[JsonValue]:
        """The parent itself, and each of its parts that is not at rest or was synced not long ago."""
        now = self.queue.clock()
        last = dict(self.queue.last_syncs(parent))
        entries = {entry.key: entry for entry in self.queue.entries() if entry.key.parent == parent}
        for key in dict.fromkeys([parent, *entries, *last]):
            entry, sync = entries.get(key), last.get(key)
            yield {
                "part": key.part,
                "queue": shown_entry(entry, now) if entry is not None else None,
                "awaits": [f"{write.resource.resource} {write.namespace}/{write.name}" for write in self.queue.awaited(key)],
                "last": _shown_sync(sync, now) if sync is not None else None,
            }


def shown_entry(entry: Entry, now: float) -> JsonObject:
    """What `/debug/queue` says of a key."""
    served, mark = (entry.lease.serves, entry.mark) if entry.lease else (entry.mark, None)
    return {
        "key": str(entry.key),
        "part": entry.key.part,
        "stage": entry.stage.value,
        "class": served.klass.name.lower() if served else None,
        "reason": served.reason if served else None,
        "ageSeconds": round(now - served.since, 3) if served else None,
        "againBecause": mark.reason if mark else None,
        "failures": entry.failures,
        "dueInSeconds": {Purpose(timer.purpose).name.lower(): round(timer.due - now, 3) for timer in entry.timers if timer.due is not None},
    }


def _shown_sync(sync: LastSync, now: float) -> JsonObject:
    shown: JsonObject = {
        "because": sync.served.reason,
        "class": sync.served.klass.name.lower(),
        "endedSecondsAgo": round(now - sync.ended, 3),
        "waitedSeconds": round(sync.began - sync.served.since, 3),
        "tookSeconds": round(sync.ended - sync.began, 3),
    }
    report = sync.report
    if report is None:
        return {**shown, "result": "unknown"}
    return {
        **shown,
        "result": report.result,
        "reason": report.reason,
        "message": report.message,
        "hookSeconds": {hook: round(seconds, 3) for hook, seconds in report.hook_seconds.items()},
        "actions": dict(report.actions),
        "traceId": report.trace_id,
    }


def _object(record: Record) -> JsonObject:
    return loads(record.raw)
