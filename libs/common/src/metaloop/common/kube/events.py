"""EventRecorder: writes Kubernetes Events about users' objects from a background task, so that callers never wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from metaloop.common.crashes import crash_logged, restarting
from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.correlation import Correlated, Correlator, Occurrence, Subject
from metaloop.common.kube.errors import NotFound
from metaloop.common.machine import wall_time
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger, metrics

EventType: TypeAlias = Literal["Normal", "Warning"]

COMPONENT = "metacontroller"
"""The source of each Event. It is Metacontroller's name, because users select Events by it."""
EVENTS = ResourceInfo(api_version="v1", resource="events", kind="Event", namespaced=True)
QUEUE_LENGTH = 1000
"""How many Events may wait to be written. Further ones are dropped and counted."""
MAX_MESSAGE_BYTES = 1024
_NAMESPACE_OF_CLUSTER_SCOPED = "default"
_RETRY_AFTER_SECONDS = (0.5, 2.0)
_FLUSH_SECONDS = 1.0

_events_total = metrics.counter("metaloop_kube_events", "Kubernetes Events by result.", ("result",))

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    occurrence: Occurrence
    resource_version: str
    correlated: Correlated


class EventRecorder:
    """Queues Events without waiting, and writes them from a background task."""

    def __init__(self, kube: KubeClient, component: str) -> None:
        self._kube = kube
        self._component = component
        self._correlator = Correlator()
        self._queue: asyncio.Queue[_Write] = asyncio.Queue(QUEUE_LENGTH)

    @staticmethod
    @asynccontextmanager
    async def running(kube: KubeClient, *, component: str = COMPONENT) -> AsyncIterator["EventRecorder"]:
        """A recorder that writes while the block runs. At the end it gets one second for the Events that still wait."""
        recorder = EventRecorder(kube, component)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(restarting("events", recorder._write_all), name="events")
            try:
                yield recorder
                with suppress(TimeoutError):
                    async with asyncio.timeout(_FLUSH_SECONDS):
                        await recorder.written()
            finally:
                writing.cancel()

    def record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        """Queue an Event about `regarding`, unless the object has used up its rate or the queue is full."""
        occurrence = Occurrence(subject=_subject(regarding), type=event_type, reason=reason, message=_shortened(message))
        correlated = self._correlator.correlate(occurrence, now=wall_time())
        if correlated is None:
            _events_total.labels("limited").inc()
            return
        write = _Write(occurrence=occurrence, resource_version=unstructured.resource_version(regarding), correlated=correlated)
        try:
            self._queue.put_nowait(write)
        except asyncio.QueueFull:
            _events_total.labels("dropped").inc()

    async def written(self) -> None:
        """Wait until the queue is empty and every Event is written."""
        await self._queue.join()

    async def _write_all(self) -> None:
        while True:
            write = await self._queue.get()
            try:
                with crash_logged("event.crashed", reason=write.occurrence.reason):
                    await self._write_or_drop(write)
            finally:
                self._queue.task_done()

    async def _write_or_drop(self, write: _Write) -> None:
        try:
            await self._write(write)
            _events_total.labels("written").inc()
        except MetaloopError as problem:
            _events_total.labels("failed").inc()
            log.warning("event.failed", **{fields.REASON: write.occurrence.reason, fields.ERROR: str(problem)})

    async def _write(self, write: _Write) -> None:
        for wait_seconds in _RETRY_AFTER_SECONDS:
            try:
                return await self._try_to_write(write)
            except Transient:
                await asyncio.sleep(wait_seconds)
        return await self._try_to_write(write)

    async def _try_to_write(self, write: _Write) -> None:
        """Count a repetition on the existing Event.

        Create the Event if it is new, or was deleted (Events live for an hour).
        """
        if write.correlated.count > 1:
            with suppress(NotFound):
                namespace, name = _namespace(write.occurrence.subject), write.correlated.name
                await self._kube.patch(EVENTS, namespace, name, dumps(_repeat(write.correlated)), MERGE_PATCH)
                return
        await self._kube.create(EVENTS, _event(write, self._component))


def _subject(obj: JsonObject) -> Subject:
    return Subject(
        api_version=unstructured.api_version(obj),
        kind=unstructured.kind(obj),
        namespace=unstructured.namespace(obj),
        name=unstructured.name(obj),
        uid=unstructured.uid(obj),
    )


def _shortened(message: str) -> str:
    return message.encode(errors="replace")[:MAX_MESSAGE_BYTES].decode(errors="ignore")


def _namespace(subject: Subject) -> str:
    return subject.namespace or _NAMESPACE_OF_CLUSTER_SCOPED


def _repeat(correlated: Correlated) -> JsonObject:
    return {"count": correlated.count, "lastTimestamp": _timestamp(correlated.last_seen), "message": correlated.message}


def _event(write: _Write, component: str) -> JsonObject:
    subject = write.occurrence.subject
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": write.correlated.name, "namespace": _namespace(subject)},
        "involvedObject": {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
            "resourceVersion": write.resource_version,
        },
        "type": write.occurrence.type,
        "reason": write.occurrence.reason,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "firstTimestamp": _timestamp(write.correlated.first_seen),
        **_repeat(write.correlated),
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
