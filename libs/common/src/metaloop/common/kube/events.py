"""EventRecorder: tells users in Kubernetes Events what happened to their objects, without ever keeping those who tell it waiting."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from metaloop.common.errors import MetaloopError, Transient
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.correlation import Correlated, Correlator, Sighting, Subject
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger, metrics

EventType: TypeAlias = Literal["Normal", "Warning"]

COMPONENT = "metacontroller"
"""Who tells, in each Event: the original's name, since people select by it."""
EVENTS = ResourceInfo(api_version="v1", resource="events", kind="Event", namespaced=True)
WAITING = 1000
"""How many Events wait to be written; more are dropped, and counted."""
LONGEST_MESSAGE_BYTES = 1024
_NAMESPACE_OF_CLUSTER_SCOPED = "default"
_RETRY_AFTER_SECONDS = (0.5, 2.0)
_LAST_WORDS_SECONDS = 1.0

_events_total = metrics.counter("metaloop_kube_events", "Kubernetes Events by what became of them.", ("result",))

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    sighting: Sighting
    resource_version: str
    correlated: Correlated


class EventRecorder:
    """Takes what is to be told at once, and writes it from a task of its own."""

    def __init__(self, kube: KubeClient, component: str) -> None:
        self._kube = kube
        self._component = component
        self._correlator = Correlator()
        self._waiting: asyncio.Queue[_Write] = asyncio.Queue(WAITING)

    @staticmethod
    @asynccontextmanager
    async def running(kube: KubeClient, *, component: str = COMPONENT) -> AsyncIterator["EventRecorder"]:
        """A recorder that writes for as long as the block lasts, and a moment longer to write what waits."""
        recorder = EventRecorder(kube, component)
        async with asyncio.TaskGroup() as group:
            writing = group.create_task(recorder._write_all())
            try:
                yield recorder
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LAST_WORDS_SECONDS):
                        await recorder.written()
            finally:
                writing.cancel()

    def record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        """Tell of `regarding`, unless it had its share of Events or too many wait already."""
        sighting = Sighting(subject=_subject(regarding), type=event_type, reason=reason, message=_shortened(message))
        correlated = self._correlator.correlate(sighting, now=time.time())
        if correlated is None:
            _events_total.labels("limited").inc()
            return
        write = _Write(sighting=sighting, resource_version=unstructured.resource_version(regarding), correlated=correlated)
        try:
            self._waiting.put_nowait(write)
        except asyncio.QueueFull:
            _events_total.labels("dropped").inc()

    async def written(self) -> None:
        """Return when nothing is waiting to be written any more."""
        await self._waiting.join()

    async def _write_all(self) -> None:
        while True:
            write = await self._waiting.get()
            try:
                await self._write(write)
                _events_total.labels("written").inc()
            except MetaloopError as problem:
                _events_total.labels("failed").inc()
                log.warning("event.failed", **{fields.REASON: write.sighting.reason, fields.ERROR: str(problem)})
            finally:
                self._waiting.task_done()

    async def _write(self, write: _Write) -> None:
        for wait_seconds in _RETRY_AFTER_SECONDS:
            try:
                return await self._try_to_write(write)
            except Transient:
                await asyncio.sleep(wait_seconds)
        return await self._try_to_write(write)

    async def _try_to_write(self, write: _Write) -> None:
        """Count a repeat on the Event that is there; create it where it is new, or was deleted since (they live for an hour)."""
        if write.correlated.count > 1:
            with suppress(NotFound):
                namespace, name = _namespace(write.sighting.subject), write.correlated.name
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
    return message.encode(errors="replace")[:LONGEST_MESSAGE_BYTES].decode(errors="ignore")


def _namespace(subject: Subject) -> str:
    return subject.namespace or _NAMESPACE_OF_CLUSTER_SCOPED


def _repeat(correlated: Correlated) -> JsonObject:
    return {"count": correlated.count, "lastTimestamp": _timestamp(correlated.last_seen), "message": correlated.message}


def _event(write: _Write, component: str) -> JsonObject:
    subject = write.sighting.subject
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
        "type": write.sighting.type,
        "reason": write.sighting.reason,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "firstTimestamp": _timestamp(write.correlated.first_seen),
        **_repeat(write.correlated),
    }


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
