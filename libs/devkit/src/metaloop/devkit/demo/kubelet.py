"""Stands in for the kubelet on a cluster without nodes.

Pods start, become ready, and succeed or fail; PersistentVolumeClaims are bound.
"""

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

_POLL_SECONDS = 0.1
_ENDED = ("Succeeded", "Failed")


def _none(_: JsonObject) -> bool:
    return False


@dataclass(slots=True, kw_only=True)
class Kubelet:
    """Updates all Pods and PersistentVolumeClaims of one namespace. Pods with restartPolicy Never end."""

    cluster: Cluster
    namespace: str
    is_unready: Callable[[JsonObject], bool] = _none
    """Which Pods start, but do not become ready."""
    failing: set[str] = field(default_factory=set[str])
    """Names of Pods that fail the next time that they end."""

    def make_all_ready(self) -> None:
        """From now on every Pod becomes ready."""
        self.is_unready = _none

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Update Pods and claims for as long as the block lasts."""
        # No task group: it would wrap a failure of the scenario in an exception group.
        task = asyncio.get_running_loop().create_task(self._run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            for pod in await self.cluster.list(PODS, self.namespace):
                await self._set_status(PODS, pod, self._status_of(pod))
            for claim in await self.cluster.list(CLAIMS, self.namespace):
                await self._set_status(CLAIMS, claim, {"phase": "Bound"})
            await asyncio.sleep(_POLL_SECONDS)

    async def _set_status(self, resource: ResourceInfo, obj: JsonObject, status: JsonObject) -> None:
        if unstructured.is_deleting(obj) or _content(unstructured.child_object(obj, "status")) == _content(status):
            return
        with suppress(ApiRefused):  # it was deleted meanwhile
            await self.cluster.patch(resource, self.namespace, unstructured.name(obj), {"status": status}, subresource="status")

    def _status_of(self, pod: JsonObject) -> JsonObject:
        name, phase = unstructured.name(pod), unstructured.child_object(pod, "status").get("phase")
        if phase in _ENDED:
            return unstructured.child_object(pod, "status")
        if phase == "Running" and unstructured.child_object(pod, "spec").get("restartPolicy") == "Never":
            return {"phase": "Failed" if _discarded(self.failing, name) else "Succeeded"}
        ready = "False" if self.is_unready(pod) else "True"
        since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return {"phase": "Running", "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}]}


def _content(status: JsonObject) -> tuple[object, list[object]]:
    """The content of a status without its timestamps."""
    conditions = status.get("conditions")
    each = conditions if isinstance(conditions, list) else []
    return status.get("phase"), [(one["type"], one["status"]) for one in each if isinstance(one, dict)]


def _discarded(names: set[str], name: str) -> bool:
    """Remove a name from a set, and return whether it was there."""
    is_member = name in names
    names.discard(name)
    return is_member
