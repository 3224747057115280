"""The controllers that run: the instance that serves each, and the rules that listen to each watch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import Gone
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.rules.rule import Rule, Unit
from metaloop.watcher.core.watch import WatchId


class FoundUnit(NamedTuple):
    """A unit of work, and the instance that serves it."""

    instance: Instance
    unit: Unit


class RunningControllers:
    """The running instances over the caches."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._instances: dict[ControllerId, Instance] = {}
        self._raw: dict[ControllerId, bytes] = {}
        self._rules: dict[WatchId, list[Rule]] = {}
        """The rules that listen to each watch, of all instances."""
        self._watches: dict[ControllerId, dict[ResourceId, tuple[WatchId, ...]]] = {}
        """What observations of units of work are made from, by controller and parent resource."""

    def __iter__(self) -> Iterator[Instance]:
        return iter(self._instances.values())

    def get(self, controller: ControllerId) -> Instance | None:
        """The instance that serves a controller; None where it does not run."""
        return self._instances.get(controller)

    def start(self, instance: Instance) -> list[JobKey]:
        """Serve a controller by `instance`, in place of an older one. Returns the units of work of all its parents."""
        self._instances[instance.controller.id] = instance
        self._watches[instance.controller.id] = instance.shown_watches()
        self._index()
        return instance.units(self._caches)

    def stop(self, controller: ControllerId) -> bool:
        """Serve a controller no longer; whether it ran."""
        if self._instances.pop(controller, None) is None:
            return False
        self._raw.pop(controller, None)
        del self._watches[controller]
        self._index()
        return True

    def show(self, controller: ControllerId, raw: bytes) -> None:
        """Show hooks the controller object like this. It may be newer than the spec that its instance serves."""
        self._raw[controller] = raw

    def raw(self, controller: ControllerId) -> bytes:
        """The controller object as hooks are shown it."""
        return self._raw.get(controller, b"{}")

    def rules_of(self, watch: WatchId) -> Sequence[Rule]:
        """The rules that listen to a watch."""
        return self._rules.get(watch, ())

    def watches_of(self, key: JobKey) -> Sequence[WatchId]:
        """What an observation of a unit of work is made from; nothing where its controller does not run."""
        return self._watches.get(key.controller, {}).get(key.resource, ())

    def serves(self, key: JobKey) -> bool:
        """Whether a unit of work is there, as far as its controller counts the parts of parents."""
        return not isinstance(self.find(key), Gone)

    def find(self, key: JobKey) -> FoundUnit | Gone:
        """A unit of work with its parent and its instance, or why there is none."""
        instance = self._instances.get(key.controller)
        if instance is None:
            return Gone(reason=f"{key.controller} is not running")
        parents = instance.parents_of(key.resource)
        if parents is None:
            return Gone(reason=f"{key.controller} is not about {key.resource}")
        record = self._caches.lookup(parents.watch.id, (key.namespace, key.name))
        if record is None:
            return Gone(reason="the parent is gone")
        if not parents.serves(record):
            return Gone(reason="the parent is not selected")
        if key.part and instance.tally is not None and not instance.tally.has(key):
            return Gone(reason="nothing is left of this part")
        return FoundUnit(instance, Unit(key, parents.watch.resource, record))

    def _index(self) -> None:
        self._rules = {}
        for instance in self._instances.values():
            for rule in instance.rules:
                for watch in rule.watches:
                    self._rules.setdefault(watch.id, []).append(rule)
