"""Keeps what runs equal to what the installed controllers need.

Whatever may change what should run sets one event: a controller, a CRD, an APIService, discovery, a subscription, a
watch that synced or failed. One task then compares what should run with what runs, and starts, replaces and stops the
difference. So events may arrive in any order.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from metaloop.common.crashes import crash_logged, restarting
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.watcher.controllers import InstalledController, InstalledControllers
from metaloop.watcher.core.health import Problem
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.world import ClusterScopedInput, ClusterScopedParent, NoStatus, Worlds
from metaloop.watcher.core.release_step import ReleaseStep, release_step_of
from metaloop.watcher.core.watch import Watch
from metaloop.watcher.core.watchset import Waiting, difference, instance_of, is_replaced
from metaloop.watcher.related_watches import RelatedWatches
from metaloop.watcher.routing import Routing
from metaloop.watcher.served import API_SERVICES, CRDS, Served
from metaloop.watcher.watches import ChangeObserver, Watches


@dataclass(slots=True, kw_only=True, eq=False)
class Supervisor:
    """Runs the watches and the controllers of this watcher."""

    routing: Routing
    controllers: InstalledControllers
    served: Served
    watches: Watches
    related_watches: RelatedWatches
    worlds: Worlds
    changed: asyncio.Event
    """Set by whatever may change what should run."""
    _has_settled: bool = False
    """Whether what is installed and what is served were both known when it last compared."""
    _served_version: int = 0

    async def run(self) -> None:
        """Supervise until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._adjust_watches(group)
            group.create_task(restarting("discovery", self.served.run), name="discovery")
            while True:
                await self.changed.wait()
                self.changed.clear()
                self._settle(group)

    def problem(self) -> str:
        """What prevents it from serving all controllers that can be served; empty when nothing does."""
        for watch in self._own_watches:
            if not self.routing.caches.is_synced(watch.id):
                return f"{watch.id} are not listed yet: {self.routing.caches.problem(watch.id) or 'listing'}"
        if self.watches.restarting:
            return f"watches that ended are started again: {', '.join(sorted(map(str, self.watches.restarting)))}"
        if not self._has_settled:
            return "what the API server serves is not known yet"
        starting = [each.id.name for each in self.controllers if each.candidate and not each.running and not each.problem]
        return f"starting: {', '.join(starting)}" if starting else ""

    # -- settling ------------------------------------------------------------------------------------------------------

    def _settle(self, group: asyncio.TaskGroup) -> None:
        """Start, replace and stop what differs from what should run."""
        if self._served_version != self.served.version:
            self._served_version = self.served.version
            self.watches.wake()
        if not self.served.resources:
            return
        found = {each.id: _contained(each, self._find_candidate) for each in self.controllers}
        self._adjust_watches(group)
        for each in self.controllers:
            problem = _contained(each, self._start_if_synced, on_crash=self.controllers.stop) or found[each.id] or self._watch_problem(each)
            self.controllers.set_problem(each, problem or self._related_problem(each.id))
        self.routing.router.mark_answerable()
        self._has_settled = all(self.routing.caches.is_synced(watch.id) for watch in self._own_watches)

    def _find_candidate(self, controller: InstalledController) -> Problem | None:
        """Set the candidate that serves the present spec, unless it runs already; why there can be none."""
        former, controller.candidate = controller.candidate, None
        if release_step_of(controller.raw) is ReleaseStep.RELEASE_PARENTS:
            self.controllers.stop(controller)
            return _release_state(controller)
        wanted = controller.wanted
        if isinstance(wanted, InvalidSpec):
            return Problem("CreateError", "InvalidSpec", f"Cannot create new controller: {wanted}")
        match instance_of(wanted, self.served.resources, worlds=self.worlds, namespaces=self.routing.caches.namespaces):
            case Waiting() as waiting if controller.runs_as_wanted:
                return Problem("SyncError", "WaitingForCRD", str(waiting), is_refusal=True)
            case Waiting() as waiting:
                return Problem("CreateError", "WaitingForCRD", f"Cannot create new controller: {waiting}")
            case NoStatus() | ClusterScopedInput() | ClusterScopedParent() as unservable:
                return Problem("SyncError", unservable.reason, str(unservable))
            case Instance() as instance:
                if not (controller.running and _is_same(instance, controller.running)):
                    controller.candidate = former if former and _is_same(instance, former) else instance
                return None

    def _start_if_synced(self, controller: InstalledController) -> Problem | None:
        """Start the candidate, if there is one; what prevents that, unless it only takes a moment."""
        candidate = controller.candidate
        if candidate is None:
            return None
        if all(self.routing.caches.is_synced(watch.id) for watch in candidate.watches):
            self.controllers.start(controller, candidate)
            return None
        problems = self._problems(candidate)
        return Problem("CreateError", "CannotWatch", f"Cannot create new controller: cannot watch {problems}") if problems else None

    def _watch_problem(self, controller: InstalledController) -> Problem | None:
        """A running controller whose resource cannot be watched goes on with what was seen last, and reports it."""
        if controller.running is None or controller.candidate is not None:
            return None
        problems = self._problems(controller.running)
        is_refusal = any(self.routing.caches[watch.id].is_refused for watch in controller.running.watches)
        return Problem("SyncError", "CannotWatch", f"Cannot watch {problems}", is_refusal=is_refusal) if problems else None

    def _related_problem(self, controller: ControllerId) -> Problem | None:
        """What prevents the parents of a running controller from seeing their related objects."""
        watches = self.routing.subscriptions.watches_of(controller)
        unknown = tuple(sorted({watch.resource for watch in watches if watch.resource not in self.served.resources}))
        if unknown:
            return Problem("SyncError", "WaitingForCRD", f"{Waiting(unknown)}: related objects")
        outside = self.routing.subscriptions.outside(controller)
        if outside:
            return Problem("SyncError", "OutsideNamespaces", outside)
        problems = "; ".join(f"{each}: {problem}" for each in watches if (problem := self.routing.caches.problem(each)))
        return Problem("SyncError", "CannotWatch", f"Cannot watch related objects: {problems}") if problems else None

    def _problems(self, instance: Instance) -> str:
        return "; ".join(f"{watch.id}: {problem}" for watch in instance.watches if (problem := self.routing.caches.problem(watch.id)))

    # -- watches -------------------------------------------------------------------------------------------------------

    def _adjust_watches(self, group: asyncio.TaskGroup) -> None:
        """Watch what is needed, and nothing else. Stop instances whose resource was replaced by another of its name."""
        running = {cache.watch.id: cache.watch for cache in self.routing.caches}
        for each in self.controllers:
            watches = each.candidate.watches if each.candidate is not None else ()
            if any(is_replaced(running.get(watch.id, watch).resource, watch.resource) for watch in watches):
                self.controllers.stop(each)
        plan = difference((*self.related_watches.needed(), *self._needed()), running)
        for watch in plan.stop:
            self.watches.stop(watch)
            self.routing.router.mark_subscribers(watch.resource)
        for watch in plan.start:
            self.watches.start(watch, group, observer=self._observer_of(watch))

    def _needed(self) -> Iterator[Watch]:
        for each in self.controllers:
            for instance in (each.running, each.candidate):
                yield from instance.watches if instance else ()
        # Where it is restricted to namespaces, it asks for no more of the cluster than what it cannot do without.
        if API_SERVICES in self.served.resources and not self.routing.caches.namespaces:
            yield Watch(self.served.resources[API_SERVICES])
        yield from self._own_watches

    @property
    def _own_watches(self) -> tuple[Watch, ...]:
        """What is watched for the supervisor itself: kinds that a cluster may lack only where they are served."""
        kinds = [world.kind for world in self.worlds.values()]
        needed = [kind.resource for kind in kinds if not kind.is_optional or kind.resource.id in self.served.resources]
        return (*(Watch(resource) for resource in needed), Watch(CRDS))

    def _observer_of(self, watch: Watch) -> ChangeObserver | None:
        """Who takes the changes of a watch beside the router: of controllers, CRDs and APIServices."""
        if watch.resource in self.controllers.resources:
            return self.controllers
        return self.served if watch.resource.id in {CRDS.id, API_SERVICES} else None


def _contained(
    controller: InstalledController,
    step: Callable[[InstalledController], Problem | None],
    *,
    on_crash: Callable[[InstalledController], None] | None = None,
) -> Problem | None:
    """What `step` finds. A crash is the controller's problem: all others are served."""
    with crash_logged("controller.crashed", controller=str(controller.id)):
        return step(controller)
    if on_crash is not None:
        on_crash(controller)
    return Problem("CreateError", "Crashed", "Cannot create new controller: an unforeseen error, which the watcher's log shows")


def _release_state(controller: InstalledController) -> Problem:
    """What a controller waits for that is being deleted."""
    if controller.release_problem:
        return Problem("ReleaseFailed", "ReleaseFailed", controller.release_problem)
    return Problem("Releasing", "Releasing", "It is being deleted: its finalizer is taken off its parents first", is_wanted=True)


def _is_same(one: Instance, other: Instance) -> bool:
    """Whether two instances serve the same spec with the same resources."""
    return one.controller is other.controller and one.watches == other.watches
