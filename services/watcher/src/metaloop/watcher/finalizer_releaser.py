"""Removes the finalizer of a deleted controller from its parents before it lets the controller go, if it is asked to.

All state is in the cluster (the annotation, and a finalizer on the controller itself), so the next leader continues. A
step that fails is told on the controller, and on each parent that refuses; it is tried again, later and later, and no
other controller waits for it.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from metaloop.common.api.controller import Controller
from metaloop.common.crashes import crash_logged
from metaloop.common.errors import Conflict, InvalidSpec, MetaloopError, Unavailable
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.controller_events import ControllerEvents
from metaloop.watcher.controllers import InstalledController
from metaloop.watcher.core.release_step import (
    ReleaseStep,
    finalizers_kept_message,
    release_step_of,
    retry_seconds,
    unknown_parents_message,
    with_release_finalizer,
    without_release_finalizer,
)
from metaloop.watcher.parents_release import ParentsReleaser
from metaloop.watcher.served import Served

log = get_logger()

_PARENTS_TOLD: Final = 20
"""On how many of the parents that keep the finalizer an Event is recorded in one try."""


class ReleaseFailed(MetaloopError):
    """A step could not be finished. Its text says what to do, or what went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIntervals:
    """How often controllers are checked, and how long to wait before the first write."""

    check_seconds: float = 1.0
    first_seconds: float = 10.0
    """How long a new or newly annotated controller is not written, so that its author meets no conflict."""
    lease_seconds: float = 5.0
    """A sync that began before its controller stopped may still add a finalizer to its parent for so long."""

    def before(self, step: ReleaseStep) -> float:
        """How long a controller must have been at a step before it is carried out."""
        return {ReleaseStep.ADD_FINALIZER: self.first_seconds, ReleaseStep.RELEASE_PARENTS: self.lease_seconds}.get(step, 0.0)


@dataclass(slots=True, kw_only=True)
class _Progress:
    """How far a controller has come with its step."""

    step: ReleaseStep
    due: float
    """When the step may be carried out next."""
    failures: int = 0
    """In a row."""
    released: int = 0
    """The parents whose finalizer was removed so far."""
    is_busy: bool = False
    """Whether the step is being carried out."""


InstalledControllers: TypeAlias = Callable[[], Iterable[InstalledController]]
"""The controllers whose steps may be carried out now."""


class FinalizerReleaser:
    """Checks all controllers every second while it runs."""

    def __init__(  # noqa: PLR0913 - what it asks, what it writes, and whom it tells
        self,
        kube: KubeClient,
        *,
        controllers: InstalledControllers,
        served: Served,
        events: ControllerEvents,
        changed: asyncio.Event,
        intervals: ReleaseIntervals,
    ) -> None:
        self._kube = kube
        self._parents = ParentsReleaser(kube)
        self._controllers = controllers
        self._served = served
        self._events = events
        self._changed = changed
        """Set when the problem of a controller's release came, changed or went."""
        self._intervals = intervals
        self._progress: dict[str, _Progress] = {}
        """Of each controller that is at a step, by its UID."""

    async def run(self) -> None:
        """Carry out the steps of all controllers until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(self._intervals.check_seconds)
                for installed, progress in self._due():
                    progress.is_busy = True
                    group.create_task(self._carry_out(installed, progress))

    def _due(self) -> list[tuple[InstalledController, _Progress]]:
        now = asyncio.get_running_loop().time()
        pending = [(each, step) for each in self._controllers() if (step := release_step_of(each.raw)) is not ReleaseStep.NOTHING]
        self._progress = {unstructured.uid(each.raw): self._progress_of(each, step, now) for each, step in pending}
        progress = [(each, self._progress[unstructured.uid(each.raw)]) for each, _ in pending]
        return [(each, state) for each, state in progress if not state.is_busy and now >= state.due]

    def _progress_of(self, installed: InstalledController, step: ReleaseStep, now: float) -> _Progress:
        known = self._progress.get(unstructured.uid(installed.raw))
        if known is not None and (known.step is step or known.is_busy):
            return known
        return _Progress(step=step, due=now + self._intervals.before(step))

    async def _carry_out(self, installed: InstalledController, progress: _Progress) -> None:
        problem = ""
        try:
            with crash_logged("release.crashed", passing=(MetaloopError,), controller=str(installed.id)) as crash:
                await self._step(installed, progress)
            problem = crash.problem
        except (Conflict, NotFound):
            pass  # it changed: the next check sees how
        except MetaloopError as error:
            problem = str(error)
        finally:
            progress.is_busy = False
        self._note(installed, progress, problem)

    def _note(self, installed: InstalledController, progress: _Progress, problem: str) -> None:
        """Tell how a step ended, and plan the next try."""
        if installed.release_problem != problem:
            installed.release_problem = problem
            self._changed.set()
        if not problem:
            progress.failures = 0
            return
        progress.failures += 1
        wait_seconds = retry_seconds(progress.failures)
        progress.due = asyncio.get_running_loop().time() + wait_seconds
        if progress.step is not ReleaseStep.RELEASE_PARENTS:
            self._events.release_failed(installed.raw, problem)
        log.warning("release.failed", **{fields.CONTROLLER: str(installed.id), fields.ERROR: problem, fields.SECONDS: wait_seconds})

    async def _step(self, installed: InstalledController, progress: _Progress) -> None:
        step = release_step_of(installed.raw)
        match step:
            case ReleaseStep.NOTHING:
                return
            case ReleaseStep.ADD_FINALIZER:
                await self._set_finalizers(installed, with_release_finalizer(installed.raw))
            case ReleaseStep.REMOVE_FINALIZER:
                await self._set_finalizers(installed, without_release_finalizer(installed.raw))
            case ReleaseStep.RELEASE_PARENTS:
                await self._release_parents(installed, progress)
            case _:
                assert_never(step)

    async def _release_parents(self, installed: InstalledController, progress: _Progress) -> None:
        """Remove the finalizer from all parents, and then the controller's own. Raises ReleaseFailed."""
        wanted = installed.wanted
        if isinstance(wanted, InvalidSpec):
            raise ReleaseFailed(unknown_parents_message(installed.id, wanted))
        result = await self._parents.release(self._parents_of(wanted), wanted.finalizer)
        progress.released += result.released
        for each in result.kept[:_PARENTS_TOLD]:
            self._events.finalizer_kept(each.parent, wanted.finalizer, controller=installed.id, problem=str(each.error))
        if result.problem:
            raise ReleaseFailed(finalizers_kept_message(wanted.finalizer, result.problem))
        if progress.released:
            # Recorded before the controller goes: if letting it go fails, the next try finds no parents to count.
            message = f"Took the finalizer {wanted.finalizer} off {progress.released} parents, as its annotation asks"
            self._events.finalizers_released(installed.raw, message)
            progress.released = 0
        await self._set_finalizers(installed, without_release_finalizer(installed.raw))

    def _parents_of(self, controller: Controller) -> list[ResourceInfo]:
        """Its parent resources, as far as they are served: others have no objects. Raises Unavailable."""
        served = self._served.resources
        if not served:
            raise Unavailable("what the API server serves is not known yet")
        return [served[rule.resource] for rule in controller.parents if rule.resource in served]

    async def _set_finalizers(self, installed: InstalledController, wanted: list[str]) -> None:
        raw = installed.raw
        metadata: JsonObject = {
            "uid": unstructured.uid(raw),
            "resourceVersion": unstructured.resource_version(raw),
            "finalizers": [*wanted],
        }
        await self._kube.patch(installed.resource, "", unstructured.name(raw), dumps({"metadata": metadata}), MERGE_PATCH)
