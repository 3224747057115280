"""Frees parents of the finalizers of a controller that is deleted, where its owner asked for that; only then the controller goes.

All that has to be known stands in the cluster (an annotation, and a finalizer on the controller itself), so whoever leads next carries on.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from metaloop.common.api.controller import Controller
from metaloop.common.errors import Conflict, InvalidSpec, MetaloopError
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube import finalizers
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.release import Step, step_of, with_release_finalizer
from metaloop.watcher.core.watchset import parent_resources

log = get_logger()

_AT_ONCE: Final = 8
"""How many parents of a controller are freed at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A controller as it is installed."""

    resource: ResourceInfo
    raw: JsonObject
    wanted: Controller | InvalidSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often is looked, and how long to wait before the first write."""

    look_seconds: float = 1.0
    first_seconds: float = 10.0
    """Who creates or annotates a controller, and updates what came back, must not meet a conflict: so long we don't write to it."""
    lease_seconds: float = 5.0
    """A sync that began before its controller stopped may still put a finalizer on its parent for so long."""


InstalledControllers: TypeAlias = Callable[[], Iterable[Installed]]
Announce: TypeAlias = Callable[[JsonObject, str, str], None]
"""Tells of a controller: a reason and a message."""


class Releaser:
    """Looks at all controllers every second, for as long as it runs."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        controllers: InstalledControllers,
        served: Callable[[], Mapping[ResourceId, ResourceInfo]],
        announce: Announce,
        pace: Pace,
    ) -> None:
        self._kube = kube
        self._controllers = controllers
        self._served = served
        self._announce = announce
        self._pace = pace
        self._since: dict[tuple[str, Step], float] = {}
        """Since when each controller, by its UID, has been at its step."""
        self._busy: set[str] = set()

    async def run(self) -> None:
        """Hold, let go and release for ever."""
        async with asyncio.TaskGroup() as group:
            while True:
                await asyncio.sleep(self._pace.look_seconds)
                for installed in self._due():
                    self._busy.add(unstructured.uid(installed.raw))
                    group.create_task(self._do(installed))

    def _due(self) -> list[Installed]:
        now = asyncio.get_running_loop().time()
        stepping = [(each, step) for each in self._controllers() if (step := step_of(each.raw)) is not Step.NOTHING]
        self._since = {(uid := unstructured.uid(each.raw), step): self._since.get((uid, step), now) for each, step in stepping}
        waits = {Step.HOLD: self._pace.first_seconds, Step.RELEASE: self._pace.lease_seconds}
        return [
            each
            for each, step in stepping
            if (uid := unstructured.uid(each.raw)) not in self._busy and now >= self._since[uid, step] + waits.get(step, 0.0)
        ]

    async def _do(self, installed: Installed) -> None:
        raw, uid = installed.raw, unstructured.uid(installed.raw)
        try:
            match step_of(raw):
                case Step.RELEASE:
                    await self._release(installed)
                case Step.HOLD:
                    await self._write(installed, held=True)
                case _:
                    await self._write(installed, held=False)
        except (Conflict, NotFound):
            pass  # it changed: the next look sees how
        except MetaloopError as error:
            log.warning("release.failed", **{fields.CONTROLLER: unstructured.describe(raw), fields.ERROR: str(error)})
        finally:
            self._busy.discard(uid)

    async def _release(self, installed: Installed) -> None:
        wanted = installed.wanted
        if isinstance(wanted, InvalidSpec):
            log.warning("release.unreadable", **{fields.CONTROLLER: unstructured.describe(installed.raw), fields.ERROR: str(wanted)})
            return
        released = 0
        while freed := sum([await self._free(self._served()[each], wanted.finalizer) for each in self._parents_of(wanted)]):
            released += freed
        if released:
            # Before the controller goes: should that fail, the next try finds no parent left to tell of.
            self._announce(
                installed.raw, "FinalizersReleased", f"Took the finalizer {wanted.finalizer} off {released} parents, as its annotation asks"
            )
        await self._write(installed, held=False)

    def _parents_of(self, controller: Controller) -> list[ResourceId]:
        """Its parent resources; one that nobody serves any more has no objects."""
        return [each for each in parent_resources(controller) if each in self._served()]

    async def _free(self, info: ResourceInfo, finalizer: str) -> int:
        """How many objects had it and were dealt with: none is left once that is 0."""
        found = await finalizers.holders(self._kube, info, finalizer)
        places = asyncio.Semaphore(_AT_ONCE)

        async def free(obj: JsonObject) -> None:
            async with places:
                await finalizers.release(self._kube, info, obj, finalizer)

        async with asyncio.TaskGroup() as group:
            for obj in found:
                group.create_task(free(obj))
        return len(found)

    async def _write(self, installed: Installed, *, held: bool) -> None:
        raw = installed.raw
        metadata: JsonObject = {
            "uid": unstructured.uid(raw),
            "resourceVersion": unstructured.resource_version(raw),
            "finalizers": [*with_release_finalizer(raw, held=held)],
        }
        await self._kube.patch(installed.resource, "", unstructured.name(raw), dumps({"metadata": metadata}), MERGE_PATCH)
