"""Keeps the running watches equal to the watches that the installed controllers want.

Everything that may change what should run (a controller, a CRD, an APIService, discovery, a watch that synced or failed) rings one bell; one
task then compares what should run with what runs, and starts, replaces and stops the difference. So there is no order of arrival that it doesn't handle.

A controller is, at any time,

    unservable   its spec is wrong: reported on it; an older instance that served a former spec keeps running
    waiting      a resource that it names isn't served (yet): reported; it starts as soon as the CRD or APIService appears
    starting     its watches are not all synced yet
    running      events are routed to it, its parents are synced
"""

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.controller import Controller
from metaloop.common.api.instructions import instructions, is_paused
from metaloop.common.api.kinds import KINDS
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.health import ControllerHealth, Problem, summary_of
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.release_step import ReleaseStep, finalizers_left_message, release_step_of
from metaloop.watcher.core.watchset import NoStatus, Waiting, difference, instance_of, is_another_kind
from metaloop.watcher.finalizer_releaser import InstalledController
from metaloop.watcher.route import Router
from metaloop.watcher.served import Served
from metaloop.watcher.settings import WatcherSettings
from metaloop.watcher.watches import Watches

log = get_logger()

_CONTROLLERS: Final = tuple(kind.resource for kind in KINDS.values())
CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1",
    resource="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    has_status=True,
)
_OURS = (*_CONTROLLERS, CRDS)
_API_SERVICES: Final = ResourceId("apiregistration.k8s.io/v1", "apiservices")
"""Watched where they are served: not every API server passes requests on to others."""

EventType: TypeAlias = Literal["Normal", "Warning"]


class Announcer(Protocol):
    """Records Kubernetes Events; never fails, never waits."""

    def record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        """Have an Event on `regarding`."""
        ...


def _always() -> bool:
    return True


def _never() -> bool:
    return False


@dataclass(slots=True, eq=False)
class _Controller:
    """One installed controller: what it asks for, and what became of that."""

    resource: ResourceInfo
    raw: JsonObject
    shown: bytes
    """`raw` as hooks are shown it, from when its spec is served on."""
    spec: JsonValue
    uid: str
    wanted: Controller | InvalidSpec
    candidate: Instance | None = None
    """Serves the wanted spec, but isn't running yet: its watches are starting."""
    running: Instance | None = None
    problem: Problem | None = None
    """As it was told last."""

    @property
    def runs_as_wanted(self) -> bool:
        """Whether what runs serves the present spec."""
        return self.running is not None and self.running.controller is self.wanted


class Supervisor:
    """All controllers of this watcher."""

    def __init__(self, *, router: Router, watches: Watches, served: Served, announcer: Announcer, settings: WatcherSettings) -> None:
        self._router = router
        self._watches = watches
        self._served = served
        self._announcer = announcer
        self._share = settings.share
        self._grace_seconds = settings.related_grace_seconds
        self._leads: Callable[[], bool] = _never
        """Whether this watcher leads at this moment. Otherwise it records no Events."""
        self._controllers: dict[ControllerId, _Controller] = {}
        self._related: dict[ResourceId, float] = {}
        """The related resources that are watched, each with the time until when: infinite while anybody is subscribed to it."""
        self._bell = asyncio.Event()
        self._has_settled = False
        """Whether what is installed and what is served were both known when it was last looked at what should run."""

    # -- what happens ----------------------------------------------------------------------------------------------------------------

    def ring(self) -> None:
        """Look again at what should run."""
        self._bell.set()

    def take(self, change: Change) -> None:
        """One event of any watch: ours are looked at here, all are routed."""
        if change.resource in _CONTROLLERS:
            self._take_controller(change)
        elif change.resource is CRDS:
            self._served.take_crd(change)
        elif change.resource.id == _API_SERVICES:
            self._served.take_api_service(change)
        self._router.take(change)

    def take_served(self) -> None:
        """What the API server serves has changed."""
        self._watches.wake()
        self.ring()

    async def run(self) -> None:
        """Supervise for ever."""
        async with asyncio.TaskGroup() as group:
            for resource in _OURS:
                self._watches.start(resource, group)
            group.create_task(self._served.run(), name="discovery")
            while True:
                await self._bell.wait()
                self._bell.clear()
                self._settle(group)

    def problem(self) -> str:
        """What keeps us from serving all controllers that can be served; empty when nothing does."""
        for resource in _OURS:
            if not self._watches.is_synced(resource.id):
                return f"{resource.id} are not listed yet: {self._watches.problem(resource.id) or 'listing'}"
        if not self._has_settled:
            return "what the API server serves is not known yet"
        starting = [id_.name for id_, each in self._controllers.items() if each.candidate and not each.running and not each.problem]
        return f"starting: {', '.join(starting)}" if starting else ""

    def health(self) -> Iterator[ControllerHealth]:
        """Every controller and its health."""
        for id_, controller in self._controllers.items():
            generation = unstructured.generation(controller.raw)
            summary = summary_of(
                generation, problem=controller.problem, stats=self._router.stats.get(id_), is_paused=is_paused(controller.raw)
            )
            yield ControllerHealth(resource=controller.resource, raw=controller.raw, summary=summary)

    def installed(self) -> Iterator[InstalledController]:
        """All controllers as they are."""
        for controller in self._controllers.values():
            yield InstalledController(resource=controller.resource, raw=controller.raw, wanted=controller.wanted)

    def begin_term(self, *, leads: Callable[[], bool] = _always) -> None:
        """Record Events from now on while this watcher `leads`. Mark all parents, and record the present state, as another leader may have before."""
        self._leads = leads
        for controller in self._controllers.values():
            if controller.running is not None:
                self._announce_beginning(controller)
                self._router.start(controller.running, reason="watcher started")
            if controller.problem is not None:
                self._announce_problem(controller, controller.problem)

    def record_event(self, regarding: JsonObject, reason: str, message: str) -> None:
        """Record a Normal Event on a controller."""
        self._announcer.record(regarding, "Normal", reason, message)

    def end_term(self) -> None:
        """Record no Events: another watcher may lead this shard."""
        self._leads = _never

    # -- controllers -----------------------------------------------------------------------------------------------------------------

    def _take_controller(self, change: Change) -> None:
        controller_id = ControllerId(change.resource.kind, change.key[1])
        selected = change.new if change.new is not None and self._share.holds(controller_id, change.new.labels) else None
        known = self._controllers.get(controller_id)
        if known is not None and change.new is None:
            self._report_finalizers_left(controller_id, known)
        if known is not None and (selected is None or selected.uid != known.uid):
            self._remove(controller_id, known)
        if selected is not None:
            self._learn(controller_id, change.resource, selected)
        self.ring()

    def _learn(self, controller_id: ControllerId, resource: ResourceInfo, record: Record) -> None:
        """Only another spec makes another instance; whatever else changes, hooks are shown at once, and parents synced where it concerns them."""
        raw = record.parse()
        spec, known = raw.get("spec"), self._controllers.get(controller_id)
        if known is None:
            added = _Controller(resource, raw, record.raw, spec, record.uid, _wanted(resource, raw))
            self._controllers[controller_id] = added
            if is_paused(raw):
                self._announce_pause(added)
            return
        former, known.raw, known.shown = known.raw, raw, record.raw
        if is_paused(raw) != is_paused(former):
            self._announce_pause(known)
        if known.spec != spec:
            known.spec, known.wanted, known.candidate, known.problem = spec, _wanted(resource, raw), None, None
        elif known.runs_as_wanted:
            self._router.controllers[controller_id] = record.raw
        if known.running is not None and instructions(raw) != instructions(former):
            if not known.runs_as_wanted:
                self._router.controllers[controller_id] = dumps(_with_spec_of(known.running, raw))
            self._router.start(known.running, reason="controller was told something else")

    def _remove(self, controller_id: ControllerId, controller: _Controller) -> None:
        self._stop(controller)
        del self._controllers[controller_id]

    # -- settling --------------------------------------------------------------------------------------------------------------------

    def _settle(self, group: asyncio.TaskGroup) -> None:
        """Start, replace and stop what differs from what should run."""
        if not self._served.resources:
            return
        found = {id_: self._find_candidate(controller) for id_, controller in self._controllers.items()}
        self._adjust_watches(group)
        for id_, controller in self._controllers.items():
            problem = self._start_if_synced(controller) or found[id_] or self._watch_problem(controller)
            self._set_problem(controller, problem or self._related_problem(id_))
        self._router.mark_answerable()
        self._has_settled = all(self._watches.is_synced(resource.id) for resource in _OURS)

    def _find_candidate(self, controller: _Controller) -> Problem | None:
        """Have the instance that serves the present spec as candidate, unless it runs already; why there can be none."""
        former, controller.candidate = controller.candidate, None
        if release_step_of(controller.raw) is ReleaseStep.RELEASE_PARENTS:
            self._stop(controller)
            return Problem("Releasing", "Releasing", "It is being deleted: its finalizer is taken off its parents first", is_wanted=True)
        wanted = controller.wanted
        if isinstance(wanted, InvalidSpec):
            return Problem("CreateError", "InvalidSpec", f"Cannot create new controller: {wanted}")
        match instance_of(wanted, self._served.resources):
            case Waiting() as waiting if controller.runs_as_wanted:
                return Problem("SyncError", "WaitingForCRD", str(waiting), is_refusal=True)
            case Waiting() as waiting:
                return Problem("CreateError", "WaitingForCRD", f"Cannot create new controller: {waiting}")
            case NoStatus() as problem:
                return Problem("SyncError", "NoStatusSubresource", str(problem))
            case Instance() as instance:
                if not (controller.running and _is_same(instance, controller.running)):
                    controller.candidate = former if former and _is_same(instance, former) else instance
                return None

    def _adjust_watches(self, group: asyncio.TaskGroup) -> None:
        """Watch what is needed, and nothing else. An instance whose resource was replaced by another of the same name must not go on."""
        for controller in self._controllers.values():
            candidate = controller.candidate
            if candidate and any(is_another_kind(info, self._watched.get(info.id, info)) for info in candidate.resources):
                self._stop(controller)
        plan = difference((*self._needed_for_related(), *self._needed()), self._watched)
        for resource in plan.stop:
            self._watches.stop(resource)
            self._router.mark_subscribers(resource)
        for resource in plan.start:
            self._watches.start(resource, group)

    def _needed(self) -> Iterable[ResourceInfo]:
        for controller in self._controllers.values():
            for instance in (controller.running, controller.candidate):
                yield from instance.resources if instance else ()
        if _API_SERVICES in self._served.resources:
            yield self._served.resources[_API_SERVICES]
        yield from _OURS

    def _needed_for_related(self) -> list[ResourceInfo]:
        """The served resources that a parent is subscribed to, or was a moment ago."""
        loop, needed = asyncio.get_running_loop(), self._router.subscriptions.resources
        now = loop.time()
        for resource in needed:
            self._related[resource] = math.inf
        for resource, until in tuple(self._related.items()):
            if resource not in needed and math.isinf(until):
                self._related[resource] = now + self._grace_seconds
                loop.call_later(self._grace_seconds, self.ring)
            elif until <= now:
                del self._related[resource]
        return [self._served.resources[resource] for resource in self._related if resource in self._served.resources]

    def _start_if_synced(self, controller: _Controller) -> Problem | None:
        """Run the candidate, if there is one; what keeps it from that, where it isn't merely a matter of a moment."""
        candidate = controller.candidate
        if candidate is None:
            return None
        if all(self._watches.is_synced(info.id) for info in candidate.resources):
            self._start(controller, candidate)
            return None
        problems = self._problems(candidate)
        return Problem("CreateError", "CannotWatch", f"Cannot create new controller: cannot watch {problems}") if problems else None

    def _watch_problem(self, controller: _Controller) -> Problem | None:
        """A running controller whose resource can't be watched goes on with what was seen last, and says so."""
        if controller.running is None or controller.candidate is not None:
            return None
        problems = self._problems(controller.running)
        is_refusal = any(self._watches.is_refused(info.id) for info in controller.running.resources)
        return Problem("SyncError", "CannotWatch", f"Cannot watch {problems}", is_refusal=is_refusal) if problems else None

    def _related_problem(self, controller: ControllerId) -> Problem | None:
        """What prevents the parents of a running controller from seeing their related objects."""
        resources = self._router.subscriptions.resources_of(controller)
        unknown = tuple(sorted(resource for resource in resources if resource not in self._served.resources))
        if unknown:
            return Problem("SyncError", "WaitingForCRD", f"{Waiting(unknown)}: related objects")
        problems = "; ".join(f"{resource}: {problem}" for resource in resources if (problem := self._watches.problem(resource)))
        return Problem("SyncError", "CannotWatch", f"Cannot watch related objects: {problems}") if problems else None

    def _problems(self, instance: Instance) -> str:
        return "; ".join(f"{info.id}: {problem}" for info in instance.resources if (problem := self._watches.problem(info.id)))

    @property
    def _watched(self) -> dict[ResourceId, ResourceInfo]:
        return {id_: cache.resource for id_, cache in self._watches.caches.items()}

    # -- starting and stopping -------------------------------------------------------------------------------------------------------

    def _start(self, controller: _Controller, candidate: Instance) -> None:
        is_first = controller.running is None
        self._announce_end(controller)
        controller.running, controller.candidate = candidate, None
        self._router.controllers[candidate.controller.id] = controller.shown
        self._router.start(candidate, reason="controller started" if is_first else "controller changed")
        self._announce_beginning(controller)
        self.ring()  # what only the former instance wanted is watched no longer

    def _stop(self, controller: _Controller) -> None:
        """Run a controller no longer, if it ran."""
        if controller.running is None:
            return
        controller_id = controller.running.controller.id
        self._router.stop(controller_id)
        self._router.controllers.pop(controller_id, None)
        self._announce_end(controller)
        controller.running = None

    def _announce_beginning(self, controller: _Controller) -> None:
        name = unstructured.name(controller.raw)
        self._announce(controller, "Normal", "Starting", f"Starting controller: {name}")
        self._announce(controller, "Normal", "Started", f"Started controller: {name}")

    def _announce_end(self, controller: _Controller) -> None:
        if controller.running is not None:
            name = unstructured.name(controller.raw)
            self._announce(controller, "Normal", "Stopping", f"Stopping controller: {name}")
            self._announce(controller, "Normal", "Stopped", f"Stopped controller: {name}")

    def _announce_pause(self, controller: _Controller) -> None:
        if is_paused(controller.raw):
            told = f"Paused: no hook is called and no child is written until the annotation {PAUSED_ANNOTATION} is taken away"
            self._announce(controller, "Normal", "Paused", told)
        else:
            self._announce(controller, "Normal", "Resumed", "Resumed: all parents are synced")

    # -- telling ---------------------------------------------------------------------------------------------------------------------

    def _set_problem(self, controller: _Controller, problem: Problem | None) -> None:
        """Record a new problem of a controller once. Once a missing resource is back, mark all its parents."""
        before, controller.problem = controller.problem, problem
        if problem is not None and problem != before:
            self._announce_problem(controller, problem)
        if problem is None and before is not None and before.is_refusal and controller.running is not None:
            self._router.start(controller.running, reason="its resources can be watched again")

    def _announce_problem(self, controller: _Controller, problem: Problem) -> None:
        self._announce(controller, "Normal" if problem.is_wanted else "Warning", problem.reason, problem.message)

    def _report_finalizers_left(self, controller_id: ControllerId, controller: _Controller) -> None:
        """Record which parents of a deleted controller still hold its finalizer, and how to remove it."""
        holders = self._router.finalizer_holders(controller_id)
        if holders and controller.running is not None:
            message = finalizers_left_message(
                controller.running.controller.finalizer, holders, kind=controller_id.kind, name=controller_id.name
            )
            self._announce(controller, "Warning", "FinalizersLeft", message)

    def _announce(self, controller: _Controller, type_: EventType, reason: str, message: str) -> None:
        say: Callable[..., object] = log.warning if type_ == "Warning" else log.info
        say("controller.event", **{fields.CONTROLLER: unstructured.describe(controller.raw), fields.REASON: reason, "message": message})
        if self._leads():
            self._announcer.record(controller.raw, type_, reason, message)


def _is_same(one: Instance, other: Instance) -> bool:
    """Whether two instances serve the same spec with the same resources."""
    return one.controller is other.controller and one.resources == other.resources


def _wanted(resource: ResourceInfo, raw: JsonObject) -> Controller | InvalidSpec:
    try:
        return KINDS[resource.kind].parse(raw)
    except InvalidSpec as problem:
        return problem


def _with_spec_of(running: Instance, raw: JsonObject) -> JsonObject:
    """A controller that goes on with its former spec, as hooks are shown it: in a version that nobody takes for the one with another spec."""
    served = running.controller
    version = f"{served.resource_version}.{unstructured.resource_version(raw)}"
    return {**raw, "metadata": {**unstructured.metadata(raw), "resourceVersion": version}, "spec": served.raw.get("spec")}
