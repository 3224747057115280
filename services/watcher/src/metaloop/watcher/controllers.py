"""The installed controllers that this watcher serves: what each asks for, and what became of it.

A controller is, at any time,

    unservable   its spec is invalid: reported on it; an instance that serves a former spec keeps running
    waiting      a resource that it names is not served (yet): reported; it starts once the CRD or APIService appears
    starting     its watches are not all synced yet
    running      events are routed to it, and its parents are synced
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from metaloop.common.api.controller import Controller
from metaloop.common.api.instructions import instructions, is_paused
from metaloop.common.crashes import crash_logged
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.controller_events import ControllerEvents
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.health import ControllerHealth, Problem, summary_of
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import Worlds
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.release_step import finalizers_left_message
from metaloop.watcher.core.shard import Share
from metaloop.watcher.route import Router


@dataclass(slots=True, eq=False, kw_only=True)
class InstalledController:
    """One installed controller."""

    id: ControllerId
    resource: ResourceInfo
    raw: JsonObject
    shown: bytes
    """`raw` as hooks are shown it once its spec is served."""
    spec: JsonValue
    uid: str
    wanted: Controller | InvalidSpec
    """The parsed spec, or why it cannot be served."""
    candidate: Instance | None = None
    """Serves the wanted spec, but does not run yet: its watches are starting."""
    running: Instance | None = None
    problem: Problem | None = None
    """As it was reported last."""
    release_problem: str = ""
    """Why the last step of its release failed (see `release_step.py`); empty if none did."""

    @property
    def runs_as_wanted(self) -> bool:
        """Whether what runs serves the present spec."""
        return self.running is not None and self.running.controller is self.wanted


class InstalledControllers:
    """All controllers of this watcher's share. It observes the watches of their resources."""

    def __init__(self, router: Router, events: ControllerEvents, *, worlds: Worlds, share: Share, changed: asyncio.Event) -> None:
        self._router = router
        self._events = events
        self._worlds = worlds
        self._share = share
        self._changed = changed
        self._controllers: dict[ControllerId, InstalledController] = {}

    def __iter__(self) -> Iterator[InstalledController]:
        return iter(self._controllers.values())

    @property
    def resources(self) -> tuple[ResourceInfo, ...]:
        """The resources of controllers, one for each kind."""
        return tuple(world.kind.resource for world in self._worlds.values())

    def health(self) -> Iterator[ControllerHealth]:
        """Every controller and its health."""
        for each in self:
            generation, stats = unstructured.generation(each.raw), self._router.stats.get(each.id)
            summary = summary_of(generation, problem=each.problem, stats=stats, is_paused=is_paused(each.raw))
            yield ControllerHealth(resource=each.resource, raw=each.raw, summary=summary)

    # -- leader terms --------------------------------------------------------------------------------------------------

    def begin_term(self) -> None:
        """Mark all parents, and record the present state as Events, since another leader may have known otherwise."""
        self._events.is_in_term = True
        for each in self:
            if each.running is not None:
                self._events.started(each.raw)
                self._router.start(each.running, reason="watcher started")
            if each.problem is not None:
                self._events.has_problem(each.raw, each.problem)

    def end_term(self) -> None:
        """Record no Events: another watcher may lead."""
        self._events.is_in_term = False

    # -- what the supervisor decides -----------------------------------------------------------------------------------

    def start(self, controller: InstalledController, candidate: Instance) -> None:
        """Serve a controller by its candidate, in place of an older instance."""
        is_first = controller.running is None
        if not is_first:
            self._events.stopped(controller.raw)
        controller.running, controller.candidate = candidate, None
        self._router.show(controller.id, controller.shown)
        self._router.start(candidate, reason="controller started" if is_first else "controller changed")
        self._events.started(controller.raw)
        self._changed.set()  # what only the former instance needed is no longer watched

    def stop(self, controller: InstalledController) -> None:
        """Serve a controller no longer, if it ran."""
        if controller.running is not None:
            self._router.stop(controller.id)
            self._events.stopped(controller.raw)
            controller.running = None

    def set_problem(self, controller: InstalledController, problem: Problem | None) -> None:
        """Record a new problem once. Once a missing resource is back, mark all parents."""
        before, controller.problem = controller.problem, problem
        if problem is not None and problem != before:
            self._events.has_problem(controller.raw, problem)
        if problem is None and before is not None and before.is_refusal and controller.running is not None:
            self._router.start(controller.running, reason="its resources can be watched again")

    # -- what is observed ----------------------------------------------------------------------------------------------

    def take(self, change: Change) -> None:
        """A controller was created, changed or deleted."""
        controller_id = ControllerId(change.resource.kind, change.key[1])
        selected = change.new if change.new is not None and self._share.holds(controller_id, change.new.labels) else None
        known = self._controllers.get(controller_id)
        if known is not None and change.new is None:
            self._report_finalizers_left(known)
        if known is not None and (selected is None or selected.uid != known.uid):
            self.stop(known)
            del self._controllers[controller_id]
        if selected is not None:
            self._learn(controller_id, change.resource, selected)
        self._changed.set()

    def _learn(self, controller_id: ControllerId, resource: ResourceInfo, record: Record) -> None:
        raw, known = record.parse(), self._controllers.get(controller_id)
        if known is not None:
            self._update(known, raw, record.raw)
            return
        wanted = self._parsed(resource, raw)
        self._controllers[controller_id] = InstalledController(
            id=controller_id, resource=resource, raw=raw, shown=record.raw, spec=raw.get("spec"), uid=record.uid, wanted=wanted
        )
        if is_paused(raw):
            self._events.pause_changed(raw)

    def _update(self, known: InstalledController, raw: JsonObject, shown: bytes) -> None:
        """Learn a changed controller. Only another spec needs another instance.

        Hooks are shown any other change at once, and parents are marked if it concerns them.
        """
        former, known.raw, known.shown = known.raw, raw, shown
        if is_paused(raw) != is_paused(former):
            self._events.pause_changed(raw)
        if known.spec != raw.get("spec"):
            known.spec, known.wanted, known.candidate, known.problem = raw.get("spec"), self._parsed(known.resource, raw), None, None
        elif known.runs_as_wanted:
            self._router.show(known.id, shown)
        if known.running is not None and instructions(raw) != instructions(former):
            if not known.runs_as_wanted:
                self._router.show(known.id, dumps(_with_spec_of(known.running, raw)))
            self._router.start(known.running, reason="controller was told something else")

    def _parsed(self, resource: ResourceInfo, raw: JsonObject) -> Controller | InvalidSpec:
        with crash_logged("controller.crashed", name=unstructured.describe(raw)):
            try:
                return self._worlds[resource.kind].kind.parse(raw)
            except InvalidSpec as problem:
                return problem
        return InvalidSpec("spec", "cannot be read, by an unforeseen error, which the watcher's log shows")

    def _report_finalizers_left(self, controller: InstalledController) -> None:
        """Record which parents of a deleted controller still hold its finalizer, and how to remove it."""
        holders = self._router.finalizer_holders(controller.id)
        if holders and controller.running is not None:
            finalizer = controller.running.controller.finalizer
            message = finalizers_left_message(finalizer, holders, kind=controller.id.kind, name=controller.id.name)
            self._events.finalizers_left(controller.raw, message)


def _with_spec_of(running: Instance, raw: JsonObject) -> JsonObject:
    """A controller that keeps its former spec, as hooks are shown it: in a version of its own."""
    served = running.controller
    version = f"{served.resource_version}.{unstructured.resource_version(raw)}"
    return {**raw, "metadata": {**unstructured.metadata(raw), "resourceVersion": version}, "spec": served.raw.get("spec")}
