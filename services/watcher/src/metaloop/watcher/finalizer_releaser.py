"""Removes the finalizer of a deleted controller from its parents before it lets the controller go, if it is asked to.

All state is in the cluster (the annotation, and a finalizer on the controller itself), so the next leader continues.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from metaloop.common.api.controller import Controller
from metaloop.common.errors import Conflict, InvalidSpec, MetaloopError
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube import finalizers
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.controller_events import ControllerEvents
from metaloop.watcher.controllers import InstalledController
from metaloop.watcher.core.release_step import ReleaseStep, release_step_of, with_release_finalizer, without_release_finalizer
from metaloop.watcher.served import Served

log = get_logger()

_CONCURRENT_RELEASES: Final = 8
"""From how many parents of a controller the finalizer is removed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseIntervals:
    """How often controllers are checked, and how long to wait before the first write."""

    check_seconds: float = 1.0
    first_seconds: float = 10.0
    """How long a new or newly annotated controller is not written, so that its author meets no conflict."""
    lease_seconds: float = 5.0
    """A sync that began before its controller stopped may still add a finalizer to its parent for so long."""


InstalledControllers: TypeAlias = Callable[[], Iterable[InstalledController]]
"""The controllers whose steps may be carried out now."""


class FinalizerReleaser:
    """Checks all controllers every second while it runs."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        controllers: InstalledControllers,
        served: Served,
        events: ControllerEvents,
        intervals: ReleaseIntervals,
    ) -> None:
        self._kube = kube
        self._controllers = controllers
        self._served = served
        self._events = events
        self._intervals = intervals
        self._since: dict[tuple[str, ReleaseStep], float] = {}
        """Since when each controller, by its UID, has been at its step."""
        self._busy: set[str] = set()
        """The UIDs of the controllers whose step is being carried out."""

    async def run(self) -> None:
        """Carry out the steps of all controllers until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(self._intervals.check_seconds)
                for installed in self._due():
                    self._busy.add(unstructured.uid(installed.raw))
                    group.create_task(self._carry_out(installed))

    def _due(self) -> list[InstalledController]:
        now = asyncio.get_running_loop().time()
        pending = [(each, step) for each in self._controllers() if (step := release_step_of(each.raw)) is not ReleaseStep.NOTHING]
        self._since = {(uid := unstructured.uid(each.raw), step): self._since.get((uid, step), now) for each, step in pending}
        waits = {ReleaseStep.ADD_FINALIZER: self._intervals.first_seconds, ReleaseStep.RELEASE_PARENTS: self._intervals.lease_seconds}
        return [
            each
            for each, step in pending
            if (uid := unstructured.uid(each.raw)) not in self._busy and now >= self._since[uid, step] + waits.get(step, 0.0)
        ]

    async def _carry_out(self, installed: InstalledController) -> None:
        raw, uid = installed.raw, unstructured.uid(installed.raw)
        try:
            await self._step(installed)
        except (Conflict, NotFound):
            pass  # it changed: the next check sees how
        except MetaloopError as error:
            log.warning("release.failed", **{fields.CONTROLLER: unstructured.describe(raw), fields.ERROR: str(error)})
        finally:
            self._busy.discard(uid)

    async def _step(self, installed: InstalledController) -> None:
        step = release_step_of(installed.raw)
        match step:
            case ReleaseStep.NOTHING:
                return
            case ReleaseStep.ADD_FINALIZER:
                await self._set_finalizers(installed, with_release_finalizer(installed.raw))
            case ReleaseStep.REMOVE_FINALIZER:
                await self._set_finalizers(installed, without_release_finalizer(installed.raw))
            case ReleaseStep.RELEASE_PARENTS:
                await self._release_parents(installed)
            case _:
                assert_never(step)

    async def _release_parents(self, installed: InstalledController) -> None:
        wanted = installed.wanted
        if isinstance(wanted, InvalidSpec):
            log.warning("release.unreadable", **{fields.CONTROLLER: unstructured.describe(installed.raw), fields.ERROR: str(wanted)})
            return
        released = 0
        while found := sum(
            [await self._release_objects(self._served.resources[each], wanted.finalizer) for each in self._parents_of(wanted)]
        ):
            released += found
        if released:
            # Recorded before the controller goes: if letting it go fails, the next try finds no parents to count.
            message = f"Took the finalizer {wanted.finalizer} off {released} parents, as its annotation asks"
            self._events.finalizers_released(installed.raw, message)
        await self._set_finalizers(installed, without_release_finalizer(installed.raw))

    def _parents_of(self, controller: Controller) -> list[ResourceId]:
        """Its parent resources, as far as they are served: others have no objects."""
        return [rule.resource for rule in controller.parents if rule.resource in self._served.resources]

    async def _release_objects(self, info: ResourceInfo, finalizer: str) -> int:
        """How many objects held the finalizer. None is left once this returns 0."""
        found = await finalizers.holders(self._kube, info, finalizer)
        limiter = asyncio.Semaphore(_CONCURRENT_RELEASES)

        async def release(obj: JsonObject) -> None:
            async with limiter:
                await finalizers.release(self._kube, info, obj, finalizer)

        async with asyncio.TaskGroup() as group:
            for obj in found:
                group.create_task(release(obj))
        return len(found)

    async def _set_finalizers(self, installed: InstalledController, wanted: list[str]) -> None:
        raw = installed.raw
        metadata: JsonObject = {
            "uid": unstructured.uid(raw),
            "resourceVersion": unstructured.resource_version(raw),
            "finalizers": [*wanted],
        }
        await self._kube.patch(installed.resource, "", unstructured.name(raw), dumps({"metadata": metadata}), MERGE_PATCH)
