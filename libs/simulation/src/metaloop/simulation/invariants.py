"""What holds at all times of a run, whatever goes wrong. Each violation becomes a line of the history."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.simulation.cluster.store import Event
from metaloop.simulation.webhooks import HookCall

if TYPE_CHECKING:
    from metaloop.simulation.world import World

_BOOKKEEPING: Final = frozenset({"leases", "events", *(kind.resource.resource for kind in KINDS.values())})
"""Resources that the services write for themselves, now and then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """The last good answer that a reconciler got for a parent."""

    children: frozenset[tuple[str, str]]
    """Kind and name of each."""


@dataclass(slots=True, kw_only=True)
class Invariants:
    """Watches a world from its start."""

    world: "World"
    writes: int = 0
    """How many writes of services there were to anything but bookkeeping."""
    _answers: dict[tuple[str, str], _Answer] = field(default_factory=dict[tuple[str, str], _Answer])
    """By the process that called, and the parent's UID."""

    def watch(self) -> None:
        """Begin to watch."""
        self.world.webhooks.on_begin.append(self._begun)
        self.world.webhooks.on_answer.append(self._answered)
        self.world.api.observers.append(self._changed)

    def _begun(self, call: HookCall) -> None:
        """Two calls for one unit of work are never live at once, except those of one sync for several revisions."""
        for other in self.world.webhooks.live:
            is_one_sync = other.caller == call.caller and _spec(other.parent) != _spec(call.parent)
            if other.unit == call.unit and not is_one_sync and not self._may_be_late(other):
                name = unstructured.name(call.parent)
                self.world.history.violation(f"two live hook calls for {name}: by {other.caller} and by {call.caller}")

    def _may_be_late(self, call: HookCall) -> bool:
        """Whether who makes a call was stopped meanwhile. It could not end the call when its lease was over."""
        caller = self.world.processes[call.caller.partition("#")[0]]
        return any(process.stalled_until >= call.began for process in (caller, *self.world.gateways))

    def _answered(self, call: HookCall, answered: JsonObject) -> None:
        found = _children(answered)
        self._answers[call.caller.partition("#")[0], unstructured.uid(call.parent)] = _Answer(children=found)

    def _changed(self, info: ResourceInfo, event: Event, actor: str) -> None:
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
        answer = self._answers.get((actor, owner.uid))
        name = unstructured.name(child)
        if answer is None:
            self.world.history.violation(f"{actor} deleted {info.resource} {name} without a good answer")
        elif (info.kind, name) in answer.children:
            self.world.history.violation(f"{actor} deleted {info.resource} {name}, which its last answer desires")


def _is_deletion(event: Event, before: JsonObject) -> bool:
    if event.type == "DELETED":
        return not unstructured.is_deleting(before)  # else a finalizer was removed
    return unstructured.is_deleting(event.obj) and not unstructured.is_deleting(before)


def _children(answered: JsonObject) -> frozenset[tuple[str, str]]:
    found: JsonValue = answered.get("children", answered.get("attachments"))
    children = [each for each in found if is_object(each)] if is_array(found) else []
    return frozenset((unstructured.kind(each), unstructured.name(each)) for each in children)


def _spec(parent: JsonObject) -> JsonObject:
    return unstructured.child_object(parent, "spec")
