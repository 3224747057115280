"""The job stream and its consumer: how they are configured, made, and made again when somebody deleted them.

With one message per subject and `discard new`, the stream refuses a second job of a queued key. A consumer with
explicit acknowledgement delivers a message again when its worker said nothing of it for `ack_wait`.
"""

import asyncio
from dataclasses import dataclass

from metaloop.common.bus.nats.connection import Connection
from metaloop.common.bus.nats.stream_owner import CLUSTER_KEY, cluster_of, keeping_owner, refusal_of
from metaloop.common.bus.nats.subjects import Subjects
from metaloop.common.errors import OtherCluster, Unavailable
from metaloop.common.json import JsonObject, dumps, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.settings import NatsSettings
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within

log = get_logger()

CONSUMER = "workers"

_NANOSECONDS = 1_000_000_000
_API_TIMEOUT_SECONDS = 2.0
_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 2.0
_REFUSED_PAUSE_SECONDS = 5.0
"""How often to look whether a stream that was another cluster's is gone."""
_SETTLED_SECONDS = 1.0
"""A stream is adopted once this time after our update it is still ours: another cluster may have seen it free, too."""
_EXISTS_OTHERWISE = 10058


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """What an operator may choose of the stream and its consumer, and whose it is."""

    ack_wait_seconds: float = 5.0
    """A job comes back when its worker said nothing of it for so long; leases last as long."""
    replicas: int = 1
    """How many servers of a NATS cluster keep each message: 1 or 3."""
    prefix: str = ""
    """Begins the names of the stream and of all subjects: see `subjects.py`."""
    cluster: str = ""
    """The UID of the Kubernetes cluster whose jobs these are; empty where it is unknown, then nothing is checked."""


def stream_settings(settings: NatsSettings, *, cluster: str) -> StreamSettings:
    """What a service's settings say of the stream of `cluster`."""
    return StreamSettings(
        ack_wait_seconds=settings.ack_wait_seconds, replicas=settings.stream_replicas, prefix=settings.nats_prefix, cluster=cluster
    )


class JobStream:
    """The job stream of a cluster with its consumer `workers`; any service may make them."""

    def __init__(self, connection: Connection, settings: StreamSettings) -> None:
        self._connection = connection
        self._settings = settings
        self.subjects = Subjects(settings.prefix)
        self._is_back = asyncio.Event()
        """Set when the connection is back, while `ensure_at_last` waits."""
        self._refusal = ""
        """Why the stream must not be used, as far as anybody knows; empty while it may be."""

    @property
    def cluster(self) -> str:
        """The UID of our cluster; empty where it is unknown."""
        return self._settings.cluster

    @property
    def is_refused(self) -> bool:
        """Whether the stream must not be used, as far as anybody knows."""
        return bool(self._refusal)

    async def check_owner(self) -> None:
        """Return unless the stream is another cluster's, as it was found to be before.

        Raises OtherCluster, or Unavailable where that can't be told now.
        """
        if self._refusal:
            await self.ensure()

    def refuse(self, refusal: OtherCluster) -> None:
        """Use the stream no more, until `ensure` finds that it is ours."""
        if str(refusal) != self._refusal:  # once, not with each look whether it is gone
            log.error("bus.stream_refused", **{fields.STREAM: self.subjects.stream, fields.ERROR: str(refusal)})
        self._refusal = str(refusal)

    async def ensure(self) -> None:
        """Have stream and consumer exist as configured.

        Raises Unavailable where NATS can't do it now, and OtherCluster where the stream is somebody else's: then it
        stays as it is.
        """
        try:
            await self._ensure_stream(_stream_config(self._settings, self.subjects))
        except OtherCluster as refusal:
            self.refuse(refusal)
            raise
        name = self.subjects.stream
        await self._done(f"CONSUMER.CREATE.{name}.{CONSUMER}", _consumer_config(self._settings, stream=name))
        self._refusal = ""

    async def _ensure_stream(self, wanted: JsonObject) -> None:
        created = await self._api(f"STREAM.CREATE.{wanted['name']}", wanted)
        if _error_code(created) != _EXISTS_OTHERWISE:
            _raise_error(created)
            return
        found = await self._found(wanted)
        await self._done(f"STREAM.UPDATE.{wanted['name']}", keeping_owner(wanted, found))
        if cluster_of(wanted) and not cluster_of(found):
            log.info("bus.stream_adopted", **{fields.STREAM: wanted["name"], fields.CLUSTER: self.cluster})
            await asyncio.sleep(_SETTLED_SECONDS)
            await self._found(wanted)

    async def _found(self, wanted: JsonObject) -> JsonObject:
        """How the stream is configured. Raises OtherCluster where it isn't ours."""
        answer = await self._done(f"STREAM.INFO.{wanted['name']}", {})
        config = answer.get("config")
        found = config if is_object(config) else {}
        if refusal := refusal_of(found, wanted):
            raise OtherCluster(refusal)
        return found

    async def ensure_at_last(self) -> None:
        """Return once `ensure` has worked, however long that takes."""
        pause = _FIRST_BACKOFF_SECONDS
        with self._connection.on_reconnect(self._is_back.set):
            while not await self._is_ensured():
                self._is_back.clear()
                await is_set_within(self._is_back, _REFUSED_PAUSE_SECONDS if self.is_refused else pause)
                pause = min(pause * 2, _LONGEST_BACKOFF_SECONDS)

    async def _is_ensured(self) -> bool:
        try:
            await self.ensure()
        except Unavailable as error:
            if not isinstance(error, OtherCluster):  # `refuse` has said so
                log.warning("bus.stream_unavailable", **{fields.ERROR: str(error)})
            return False
        return True

    async def clear(self, shard: str) -> None:
        """Remove all jobs of a shard from the stream, also those in hand.

        Raises Unavailable where NATS can't do it now, and OtherCluster where the stream is somebody else's.
        """
        await self.check_owner()
        await self._done(f"STREAM.PURGE.{self.subjects.stream}", {"filter": self.subjects.jobs_of(shard)})

    async def _done(self, call: str, body: JsonObject) -> JsonObject:
        """The answer to a JetStream API call that worked. Raises Unavailable where it didn't."""
        answer = await self._api(call, body)
        _raise_error(answer)
        return answer

    async def _api(self, call: str, body: JsonObject) -> JsonObject:
        """The answer to one JetStream API call, which may be an error."""
        answer: JsonObject = loads(await self._connection.request(f"$JS.API.{call}", dumps(body), timeout_seconds=_API_TIMEOUT_SECONDS))
        error = answer.get("error")
        if is_object(error):
            log.info("bus.stream_call_refused", **{fields.METHOD: call, fields.ERROR: error.get("description")})
        return answer


def _error_code(answer: JsonObject) -> int:
    """The error code of a JetStream API call; 0 where it worked."""
    error = answer.get("error")
    if not is_object(error):
        return 0
    return unstructured.integer(error, "err_code") or unstructured.integer(error, "code")


def _raise_error(answer: JsonObject) -> None:
    if error := _error_code(answer):
        raise Unavailable(f"job stream: JetStream said error {error}")


def _stream_config(settings: StreamSettings, subjects: Subjects) -> JsonObject:
    return {
        "name": subjects.stream,
        "subjects": [subjects.all_jobs],
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "discard_new_per_subject": True,
        "storage": "file",
        "duplicate_window": _NANOSECONDS // 10,
        "num_replicas": settings.replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_consumers": -1,
        "metadata": {CLUSTER_KEY: settings.cluster} if settings.cluster else {},
    }


def _consumer_config(settings: StreamSettings, *, stream: str) -> JsonObject:
    return {
        "stream_name": stream,
        "config": {
            "durable_name": CONSUMER,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": int(settings.ack_wait_seconds * _NANOSECONDS),
            "max_deliver": -1,
            "max_ack_pending": 10_000,
            "replay_policy": "instant",
        },
    }
