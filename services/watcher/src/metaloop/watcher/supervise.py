"""Keeps the running watches equal to the watches that the installed controllers want.

Everything that may change what should run (a controller, a CRD, discovery, a watch that synced or failed) rings one bell; one task then compares
what should run with what runs, and starts, replaces and stops the difference. So there is no order of arrival that it doesn't handle.

A controller is, at any time,

    unservable   its spec is wrong: reported on it; an older instance that served a former spec keeps running
    waiting      a resource that it names isn't served yet: reported; it starts as soon as the CRD appears
    starting     its watches are not all synced yet
    running      events are routed to it, its parents are synced
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from metaloop.common.api.composite import KIND, CompositeController, parse_composite
from metaloop.common.errors import InvalidSpec, MetaloopError
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Selector
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.record import Record
from metaloop.watcher.core.watchset import Unservable, Waiting, difference, instance_of
from metaloop.watcher.route import Router
from metaloop.watcher.watches import Watches

log = get_logger()

COMPOSITES = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="compositecontrollers", kind=KIND, namespaced=False, has_status=True
)
CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1",
    resource="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    has_status=True,
)
_OURS = (COMPOSITES.id, CRDS.id)
_DISCOVERY_PAUSE_SECONDS = 0.1
"""A CRD is established a moment before discovery tells of it, and CRDs come in bursts."""

EventType: TypeAlias = Literal["Normal", "Warning"]


class Announcer(Protocol):
    """Records Kubernetes Events; never fails, never waits."""

    def record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        """Have an Event on `regarding`."""
        ...


@dataclass(slots=True, eq=False)
class _Controller:
    """One installed controller: what it asks for, and what became of that."""

    raw: JsonObject
    shown: bytes
    """`raw` as hooks are shown it, from when its spec is served on."""
    spec: JsonValue
    uid: str
    wanted: CompositeController | InvalidSpec
    candidate: Instance | None = None
    """Serves the wanted spec, but isn't running yet: its watches are starting."""
    running: Instance | None = None
    told: str = ""
    """The last problem that was reported, so that it is reported once."""


@dataclass(slots=True, eq=False)
class Supervisor:
    """All controllers of this watcher."""

    router: Router
    watches: Watches
    discovery: Discovery
    announcer: Announcer
    target: Selector
    discovery_interval_seconds: float
    _controllers: dict[ControllerId, _Controller] = field(default_factory=dict[ControllerId, _Controller])
    _bell: asyncio.Event = field(default_factory=asyncio.Event)
    _served_may_differ: asyncio.Event = field(default_factory=asyncio.Event)
    _settled_once: bool = False

    # -- what happens ----------------------------------------------------------------------------------------------------------------

    def ring(self) -> None:
        """Look again at what should run."""
        self._bell.set()

    def take(self, change: Change) -> None:
        """One event of any watch: ours are looked at here, all are routed."""
        if change.resource is COMPOSITES:
            self._take_controller(change)
        elif change.resource is CRDS:
            self._served_may_differ.set()
        self.router.take(change)

    async def run(self) -> None:
        """Supervise for ever."""
        async with asyncio.TaskGroup() as group:
            self.watches.start(COMPOSITES, group)
            self.watches.start(CRDS, group)
            group.create_task(self._rediscover(), name="discovery")
            while True:
                await self._bell.wait()
                self._bell.clear()
                self._settle(group)

    def problem(self) -> str:
        """What keeps us from serving all controllers that can be served; empty when nothing does."""
        for resource in _OURS:
            if not self.watches.is_synced(resource):
                return f"{resource} are not listed yet: {self.watches.problem(resource) or 'listing'}"
        starting = [controller.candidate for controller in self._controllers.values() if controller.candidate and not controller.running]
        if not self._settled_once or starting:
            return f"{len(starting)} controllers are starting"
        return ""

    # -- controllers -----------------------------------------------------------------------------------------------------------------

    def _take_controller(self, change: Change) -> None:
        controller_id = ControllerId(KIND, change.key[1])
        selected = change.new if change.new is not None and self.target.matches(change.new.labels) else None
        known = self._controllers.get(controller_id)
        if known is not None and (selected is None or selected.uid != known.uid):
            self._remove(controller_id, known)
        if selected is not None:
            self._learn(controller_id, selected)
        self.ring()

    def _learn(self, controller_id: ControllerId, record: Record) -> None:
        """Only another spec makes another instance; whatever else changes, hooks are shown at once."""
        raw = record.parse()
        spec, known = raw.get("spec"), self._controllers.get(controller_id)
        if known is None:
            self._controllers[controller_id] = _Controller(raw, record.raw, spec, record.uid, _wanted(raw))
            return
        known.raw, known.shown = raw, record.raw
        if known.spec != spec:
            known.spec, known.wanted, known.candidate, known.told = spec, _wanted(raw), None, ""
        elif known.running is not None and known.running.controller is known.wanted:
            self.router.controllers[controller_id] = record.raw

    def _remove(self, controller_id: ControllerId, controller: _Controller) -> None:
        del self._controllers[controller_id]
        if controller.running is not None:
            self._announce(controller, "Normal", "Stopping", f"Stopping controller: {controller_id.name}")
        self.router.stop(controller_id)
        self.router.controllers.pop(controller_id, None)
        if controller.running is not None:
            self._announce(controller, "Normal", "Stopped", f"Stopped controller: {controller_id.name}")

    # -- settling --------------------------------------------------------------------------------------------------------------------

    def _settle(self, group: asyncio.TaskGroup) -> None:
        """Start, replace and stop what differs from what should run."""
        for controller in self._controllers.values():
            self._find_candidate(controller)
        needed = [item for controller in self._controllers.values() for item in (controller.candidate, controller.running) if item]
        plan = difference(needed, [resource for resource in self.watches.caches if resource not in _OURS])
        for resource in plan.start:
            if resource.id not in _OURS:
                self.watches.start(resource, group)
        for resource in plan.stop:
            self.watches.stop(resource)
        for controller in self._controllers.values():
            self._start_if_synced(controller)
            self._report_trouble(controller)
        self._settled_once = all(self.watches.is_synced(resource) for resource in _OURS) and bool(self.discovery.resources())

    def _find_candidate(self, controller: _Controller) -> None:
        wanted = controller.wanted
        if isinstance(wanted, InvalidSpec):
            self._complain(controller, "CreateError", f"Cannot create new controller: {wanted}")
            return
        if controller.candidate is not None or (controller.running is not None and controller.running.controller is wanted):
            return
        served = self.discovery.resources()
        if not served:
            return
        match instance_of(wanted, served):
            case Instance() as instance:
                controller.candidate = instance
            case Waiting() as waiting:
                self._complain(controller, "CreateError", f"Cannot create new controller: {waiting}")
            case Unservable(reason=reason, message=message):
                self._complain(controller, reason, message)

    def _start_if_synced(self, controller: _Controller) -> None:
        candidate = controller.candidate
        if candidate is None:
            return
        unsynced = [info.id for info in candidate.resources if not self.watches.is_synced(info.id)]
        if unsynced:
            problems = [f"{resource}: {problem}" for resource in unsynced if (problem := self.watches.problem(resource))]
            if problems:
                self._complain(controller, "CreateError", f"Cannot create new controller: cannot watch {'; '.join(problems)}")
            return
        self._start(controller, candidate)

    def _start(self, controller: _Controller, candidate: Instance) -> None:
        name, is_first = candidate.controller.name, controller.running is None
        if not is_first:
            self._announce(controller, "Normal", "Stopping", f"Stopping controller: {name}")
            self._announce(controller, "Normal", "Stopped", f"Stopped controller: {name}")
        self._announce(controller, "Normal", "Starting", f"Starting controller: {name}")
        controller.running, controller.candidate, controller.told = candidate, None, ""
        self.router.controllers[candidate.controller.id] = controller.shown
        self.router.start(candidate, reason="controller started" if is_first else "controller changed")
        self._announce(controller, "Normal", "Started", f"Started controller: {name}")
        self.ring()  # what only the former instance wanted is watched no longer

    def _report_trouble(self, controller: _Controller) -> None:
        """A running controller whose resource can't be watched (deleted, forbidden) goes on with what was seen last, and says so."""
        if controller.running is None or controller.candidate is not None or not isinstance(controller.wanted, CompositeController):
            return
        problems = [f"{info.id}: {problem}" for info in controller.running.resources if (problem := self.watches.problem(info.id))]
        if problems:
            self._complain(controller, "SyncError", f"Cannot watch {'; '.join(problems)}")
        else:
            controller.told = ""

    # -- telling ---------------------------------------------------------------------------------------------------------------------

    def _complain(self, controller: _Controller, reason: str, message: str) -> None:
        """Say once what is wrong with a controller."""
        if controller.told != message:
            controller.told = message
            self._announce(controller, "Warning", reason, message)

    def _announce(self, controller: _Controller, type_: EventType, reason: str, message: str) -> None:
        say: Callable[..., object] = log.warning if type_ == "Warning" else log.info
        say("controller.event", **{fields.CONTROLLER: _name(controller.raw), fields.REASON: reason, "message": message})
        self.announcer.record(controller.raw, type_, reason, message)

    # -- discovery -------------------------------------------------------------------------------------------------------------------

    async def _rediscover(self) -> None:
        """Keep what is known of the API server's resources current: at once when a CRD changes, and now and then."""
        while True:
            self._served_may_differ.clear()
            try:
                await self._discover()
            except (MetaloopError, OSError) as error:
                log.warning("discovery.failed", **{fields.ERROR: str(error)})
            await self._until_served_may_differ()

    async def _until_served_may_differ(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self.discovery_interval_seconds):
                await self._served_may_differ.wait()
                await asyncio.sleep(_DISCOVERY_PAUSE_SECONDS)

    async def _discover(self) -> None:
        before: set[ResourceId] = set(self.discovery.resources())
        if await self.discovery.refresh():
            if set(self.discovery.resources()) - before:
                self.watches.wake()
            self.ring()


def _wanted(raw: JsonObject) -> CompositeController | InvalidSpec:
    try:
        return parse_composite(raw)
    except InvalidSpec as problem:
        return problem


def _name(raw: JsonObject) -> str:
    metadata = raw.get("metadata")
    return f"{raw.get('kind')}/{metadata.get('name') if isinstance(metadata, dict) else ''}"
