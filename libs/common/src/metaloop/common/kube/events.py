"""EventRecorder: Kubernetes Events, combined and rationed as client-go's correlator does, that never fail or delay who records them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import Literal, TypeAlias

from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.correlate import Correlator, Fresh, Happening, Repeated
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger, metrics

log = get_logger()

EventType: TypeAlias = Literal["Normal", "Warning"]
COMPONENT = "metacontroller"
"""Who events say that they are from: the original's name, which people's filters look for."""
_EVENTS = ResourceInfo(api_version="v1", resource="events", kind="Event", namespaced=True)
_MOST_QUEUED = 1000
_MESSAGE_LIMIT = 1000
"""The API server refuses a message of 1024 bytes."""

_dropped = metrics.counter("metaloop_events_dropped", "Kubernetes Events that were not sent.", ("why",))


@dataclass(frozen=True, slots=True)
class _Recorded:
    happening: Happening
    regarding: JsonObject


class EventRecorder:
    """Sends Events one after another, behind whoever records them."""

    def __init__(self, kube: KubeClient, *, clock: Callable[[], float] = monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._correlator = Correlator()
        self._queue: asyncio.Queue[_Recorded] = asyncio.Queue(_MOST_QUEUED)

    @staticmethod
    @asynccontextmanager
    async def started(kube: KubeClient) -> AsyncIterator["EventRecorder"]:
        """A recorder for the length of the block."""
        recorder = EventRecorder(kube)
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(recorder.send(), name="events")
            try:
                yield recorder
            finally:
                sending.cancel()

    def record(self, regarding: JsonObject, type: EventType, reason: str, message: str) -> None:  # noqa: A002 - the field's name
        """Have an Event about `regarding` (an object with apiVersion, kind and metadata). Too many at once are dropped, and counted."""
        happening = Happening(uid=unstructured.uid(regarding), type=type, reason=reason, message=_cut(message))
        try:
            self._queue.put_nowait(_Recorded(happening, regarding))
        except asyncio.QueueFull:
            _dropped.labels("queue full").inc()

    async def send(self) -> None:
        """Send for ever what is recorded."""
        while True:
            recorded = await self._queue.get()
            try:
                await self._send(recorded)
            except (MetaloopError, OSError) as error:
                _dropped.labels("refused").inc()
                log.warning("event.dropped", **{fields.REASON: recorded.happening.reason, fields.ERROR: str(error)})

    async def _send(self, recorded: _Recorded) -> None:
        match self._correlator.correlate(recorded.happening, now=self._clock()):
            case Fresh(message=message, name=name):
                await self._create(recorded, name, message)
            case Repeated(message=message, name=name, count=count):
                await self._count(recorded, name, message=message, count=count)
            case None:
                _dropped.labels("rationed").inc()

    async def _create(self, recorded: _Recorded, name: str, message: str) -> None:
        await self._kube.create(_EVENTS, _event(recorded, name=name, message=message))

    async def _count(self, recorded: _Recorded, name: str, *, message: str, count: int) -> None:
        """One more of an Event that was sent before, or that the API server has forgotten since."""
        patch: JsonObject = {"count": count, "lastTimestamp": _now(), "message": message}
        try:
            await self._kube.patch(_EVENTS, _namespace(recorded.regarding), name, dumps(patch), MERGE_PATCH)
        except NotFound:
            await self._create(recorded, name, message)


def _event(recorded: _Recorded, *, name: str, message: str) -> JsonObject:
    regarding, now = recorded.regarding, _now()
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": _namespace(regarding)},
        "involvedObject": {
            "apiVersion": unstructured.api_version(regarding),
            "kind": unstructured.kind(regarding),
            "namespace": unstructured.namespace(regarding),
            "name": unstructured.name(regarding),
            "uid": unstructured.uid(regarding),
            "resourceVersion": unstructured.resource_version(regarding),
        },
        "type": recorded.happening.type,
        "reason": recorded.happening.reason,
        "message": message,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _namespace(regarding: JsonObject) -> str:
    """Events about cluster-scoped objects are kept in `default`."""
    return unstructured.namespace(regarding) or "default"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _cut(message: str) -> str:
    encoded = message.encode()
    return message if len(encoded) <= _MESSAGE_LIMIT else encoded[: _MESSAGE_LIMIT - 3].decode(errors="ignore") + "..."
