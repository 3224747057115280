"""Plays the kubelet where there is no node: Pods run and are ready, those that are to end succeed or fail, claims are bound."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.builtin import CLAIMS, PODS
from metaloop.devkit.testbed.cluster import ApiRefused, Cluster

_LOOK_SECONDS = 0.1
_ENDED = ("Succeeded", "Failed")


def _nobody(_: JsonObject) -> bool:
    return False


@dataclass(slots=True, kw_only=True)
class Kubelet:
    """All Pods and claims of one namespace. Pods that are never restarted are meant to end."""

    cluster: Cluster
    namespace: str
    is_slow: Callable[[JsonObject], bool] = _nobody
    """Which Pods start, but don't become ready for the time being."""
    failing: set[str] = field(default_factory=set[str])
    """Names of Pods that fail when they are next to end."""

    def hurry(self) -> None:
        """No Pod takes its time any more."""
        self.is_slow = _nobody

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Pods come to life for as long as the block lasts."""
        # No task group: it would wrap the story's own failure in a group.
        task = asyncio.get_running_loop().create_task(self._work())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _work(self) -> None:
        while True:
            for pod in await self.cluster.list(PODS, self.namespace):
                await self._settle(PODS, pod, self._status_of(pod))
            for claim in await self.cluster.list(CLAIMS, self.namespace):
                await self._settle(CLAIMS, claim, {"phase": "Bound"})
            await asyncio.sleep(_LOOK_SECONDS)

    async def _settle(self, resource: ResourceInfo, obj: JsonObject, status: JsonObject) -> None:
        if unstructured.is_deleting(obj) or _said(unstructured.child_object(obj, "status")) == _said(status):
            return
        with suppress(ApiRefused):  # it is gone
            await self.cluster.patch(resource, self.namespace, unstructured.name(obj), {"status": status}, subresource="status")

    def _status_of(self, pod: JsonObject) -> JsonObject:
        name, phase = unstructured.name(pod), unstructured.child_object(pod, "status").get("phase")
        if phase in _ENDED:
            return unstructured.child_object(pod, "status")
        if phase == "Running" and unstructured.child_object(pod, "spec").get("restartPolicy") == "Never":
            return {"phase": "Failed" if _taken(self.failing, name) else "Succeeded"}
        ready = "False" if self.is_slow(pod) else "True"
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"phase": "Running", "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}]}


def _said(status: JsonObject) -> tuple[object, list[object]]:
    """What a status says, whatever the time of it."""
    conditions = status.get("conditions")
    each = conditions if isinstance(conditions, list) else []
    return status.get("phase"), [(one["type"], one["status"]) for one in each if isinstance(one, dict)]


def _taken(names: set[str], name: str) -> bool:
    """Whether a name was among them; it is no longer."""
    was_there = name in names
    names.discard(name)
    return was_there
