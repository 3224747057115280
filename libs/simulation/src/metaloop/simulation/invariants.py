"""What holds at all times of a run, whatever goes wrong. Each violation becomes a line of the history."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from metaloop.common.api import MAP_KEY
from metaloop.common.api.kinds import KINDS
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.report import SyncReport, Write
from metaloop.simulation.cluster.store import Event
from metaloop.simulation.network import Port
from metaloop.simulation.resources import CONFIG_MAPS, ROUTES, THINGS
from metaloop.simulation.webhooks import HookCall, unit_of

if TYPE_CHECKING:
    from metaloop.simulation.world import World

_ENDED_SECONDS: Final = 0.05
"""How long a gateway takes to end a call."""
_FAIR_SECONDS: Final = 60.0
"""Longer than any lease, backoff of a change, or wait for a watch: no parent that a user changed waits for longer while
others are served."""
_GATE_SECONDS: Final = 1.9
"""A little less than a parent waits for the watcher's cache to see its writes."""
_SHOWN: Final = frozenset({THINGS.id, ROUTES.id, CONFIG_MAPS.id})
"""The resources whose objects hooks are shown."""
_GROUPS: Final = frozenset({"children", "attachments", "outputs"})
"""How hooks call what the parent controls."""
_BOOKKEEPING: Final = frozenset({"leases", "events", *(kind.resource.resource for kind in KINDS.values())})
"""Resources that the services write for themselves, now and then."""


_Unit: TypeAlias = tuple[str, str, str, str]
"""The name of a controller, the namespace and name of a parent, and which part of it; empty for the parent itself."""
_Children: TypeAlias = frozenset[tuple[str, str]]
"""Kind and name of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What a watcher was told of a parent's sync."""

    at: float
    watcher: Port
    writes: Sequence[Write]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grant:
    """When a watcher showed a parent to a reconciler."""

    at: float
    watcher: Port

    def may_be_older_than(self, report: _Report) -> bool:
        """Whether the watcher did not know the report, or has waited for its writes for long enough."""
        return self.watcher is not report.watcher or not 0 <= self.at - report.at <= _GATE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A user's change of a parent for which no hook was called yet."""

    at: float
    name: str
    generation: int


@dataclass(slots=True, kw_only=True)
class Invariants:
    """Watches a world from its start."""

    world: "World"
    writes: int = 0
    """How many writes of services there were to anything but bookkeeping."""
    _reports: dict[_Unit, list[_Report]] = field(default_factory=dict[_Unit, list[_Report]])
    """The last reports about each unit of work."""
    _grants: dict[_Unit, _Grant] = field(default_factory=dict[_Unit, _Grant])
    """The last grant of each unit of work."""
    _answers: dict[tuple[str, str], dict[str, _Children]] = field(default_factory=dict[tuple[str, str], dict[str, _Children]])
    """The children in the last good answers: by the process that called and the parent or part, and by controller."""
    _changes: dict[str, _Change] = field(default_factory=dict[str, _Change])
    """By the parent's UID."""

    def watch(self) -> None:
        """Begin to watch."""
        self.world.webhooks.on_begin.append(self._begun)
        self.world.webhooks.on_answer.append(self._answered)
        self.world.api.observers.append(self._changed)
        self.world.broker.on_report.append(self._reported)
        self.world.broker.on_grant.append(self._granted)

    def _begun(self, call: HookCall) -> None:
        """Two calls for one unit of work are never live at once, except those of one sync for several revisions."""
        self._check_view(call)
        self._check_fairness(call)
        for other in self.world.webhooks.live:
            is_one_sync = other.caller == call.caller and _spec(other.parent) != _spec(call.parent)
            if other.unit == call.unit and not is_one_sync and not self._is_frozen(other):
                name = unstructured.name(call.parent)
                self.world.history.violation(f"two live hook calls for {name}: by {other.caller} and by {call.caller}")

    def _reported(self, watcher: Port, report: SyncReport) -> None:
        now, key = asyncio.get_running_loop().time(), _unit(report.key)
        recent = [each for each in self._reports.get(key, ()) if now - each.at <= _GATE_SECONDS]
        self._reports[key] = [*recent, _Report(at=now, watcher=watcher, writes=report.writes)]

    def _granted(self, watcher: Port, key: JobKey) -> None:
        self._grants[_unit(key)] = _Grant(at=asyncio.get_running_loop().time(), watcher=watcher)

    def _check_view(self, call: HookCall) -> None:
        """A hook is shown everything of which its watcher knew that we wrote it when it granted the parent.

        Unless the watcher has waited for that for long enough.
        """
        name = unstructured.name(call.parent)
        key = (_controller(call), unstructured.namespace(call.parent), name, unstructured.text(call.request, "mapKey"))
        grant = self._grants.get(key)
        if grant is None or not _GROUPS & call.request.keys():
            return  # a customize hook is shown the parent alone
        observed = {unstructured.uid(each): each for each in (call.parent, *_observed(call.request))}
        known = [write for report in self._reports.get(key, ()) if not grant.may_be_older_than(report) for write in report.writes]
        for write in known:
            if self._is_hidden(write, observed.get(write.uid)):
                self.world.history.violation(f"the hook of {name} is not shown our own write to {write.resource.resource} {write.name}")

    def _check_fairness(self, call: HookCall) -> None:
        """No parent that a user changed waits for too long while others are served."""
        now, uid = asyncio.get_running_loop().time(), unstructured.uid(call.parent)
        change = self._changes.get(uid)
        if change is not None and unstructured.generation(call.parent) >= change.generation:
            del self._changes[uid]
        bound = _FAIR_SECONDS + self.world.plan.settling_seconds  # a silent watch shows nothing for that long
        for late in [other for other, each in self._changes.items() if other != uid and now - each.at > bound]:
            self.world.history.violation(f"{self._changes.pop(late).name} waits for its hook while others are served")

    def _user_changed(self, event: Event) -> None:
        obj, before = event.obj, event.before
        uid, generation = unstructured.uid(obj), unstructured.generation(obj)
        if unstructured.is_deleting(obj) or event.type == "DELETED":
            self._changes.pop(uid, None)
        elif before is None or generation > unstructured.generation(before):
            at = asyncio.get_running_loop().time()
            self._changes.setdefault(uid, _Change(at=at, name=unstructured.name(obj), generation=generation))

    def _is_hidden(self, write: Write, seen: JsonObject | None) -> bool:
        """Whether a view is older than a write. `seen` is the object in it."""
        if write.is_uncertain or write.resource not in _SHOWN:
            return False
        if write.is_deletion:
            return seen is not None and not unstructured.is_deleting(seen)
        if seen is None:
            return self._is_owned(write.uid)
        return int(unstructured.resource_version(seen)) < int(write.resource_version)

    def _is_owned(self, uid: str) -> bool:
        found = self.world.api.store.by_uid.get(uid)
        return found is not None and controller_ref(self.world.api.store.get(*found)) is not None

    def _is_frozen(self, call: HookCall) -> bool:
        """Whether the gateway of a call was stopped until a moment ago: nobody else can end the call."""
        last_moment = max(call.began, asyncio.get_running_loop().time() - _ENDED_SECONDS)
        return any(gateway.stalled_until >= last_moment for gateway in self.world.gateways)

    def _answered(self, call: HookCall, answered: JsonObject) -> None:
        found = _children(answered)
        if found is None:
            return  # the answer of a customize hook
        self._answers.setdefault((call.caller.partition("#")[0], call.unit[1]), {})[_controller(call)] = found

    def _changed(self, info: ResourceInfo, event: Event, actor: str) -> None:
        if actor == "user" and info.id == THINGS.id:
            self._user_changed(event)
        if not actor.startswith(("watcher", "reconciler")) or info.resource in _BOOKKEEPING:
            return
        self.writes += 1
        before = event.before
        if before is not None and _is_deletion(event, before) and actor.startswith("reconciler"):
            self._deleted(info, before, actor)

    def _deleted(self, info: ResourceInfo, child: JsonObject, actor: str) -> None:
        """A reconciler deletes only what its last good answer for the parent leaves out."""
        owner = controller_ref(child)
        if owner is None or info.resource == "controllerrevisions":
            return
        answers = self._answers.get((actor, unit_of(owner.uid, unstructured.annotations(child).get(MAP_KEY, ""))))
        name = unstructured.name(child)
        if answers is None:
            self.world.history.violation(f"{actor} deleted {info.resource} {name} without a good answer")
        elif any((info.kind, name) in children for children in answers.values()):
            self.world.history.violation(f"{actor} deleted {info.resource} {name}, which its last answer desires")


def _is_deletion(event: Event, before: JsonObject) -> bool:
    if event.type == "DELETED":
        return not unstructured.is_deleting(before)  # else a finalizer was removed
    return unstructured.is_deleting(event.obj) and not unstructured.is_deleting(before)


def _children(answered: JsonObject) -> _Children | None:
    """What a sync or finalize hook desires; None for another hook's answer."""
    found: JsonValue = answered.get("children", answered.get("attachments", answered.get("outputs")))
    if not is_array(found):
        return None
    children = [each for each in found if is_object(each)]
    return frozenset((unstructured.kind(each), unstructured.name(each)) for each in children)


def _controller(call: HookCall) -> str:
    return unstructured.name(unstructured.child_object(call.request, "controller"))


def _unit(key: JobKey) -> _Unit:
    return key.controller.name, key.namespace, key.name, key.part


def _observed(request: JsonObject) -> Iterable[JsonObject]:
    """The children that a hook is shown."""
    for group in (each for name in sorted(_GROUPS) for each in unstructured.child_object(request, name).values()):
        yield from (each for each in group.values() if is_object(each)) if is_object(group) else ()


def _spec(parent: JsonObject) -> JsonObject:
    return unstructured.child_object(parent, "spec")
