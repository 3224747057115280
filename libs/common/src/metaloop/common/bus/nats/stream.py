"""The job stream and its consumer: how they are configured, made, and made again when somebody deleted them.

With one message per subject and `discard new`, the stream refuses a second job of a queued key. A consumer with
explicit acknowledgement delivers a message again when its worker said nothing of it for `ack_wait`.
"""

import asyncio
from dataclasses import dataclass

from metaloop.common.bus.nats.connection import Connection
from metaloop.common.bus.nats.subjects import ALL_JOBS, jobs_of
from metaloop.common.errors import Unavailable
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within

log = get_logger()

STREAM = "JOBS"
CONSUMER = "workers"

_NANOSECONDS = 1_000_000_000
_API_TIMEOUT_SECONDS = 2.0
_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 2.0
_EXISTS_OTHERWISE = 10058


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """What an operator may choose of the stream and its consumer."""

    ack_wait_seconds: float = 5.0
    """A job comes back when its worker said nothing of it for so long; leases last as long."""
    replicas: int = 1
    """How many servers of a NATS cluster keep each message: 1 or 3."""


class JobStream:
    """The stream `JOBS` with its consumer `workers`; any service may make them."""

    def __init__(self, connection: Connection, settings: StreamSettings) -> None:
        self._connection = connection
        self._settings = settings
        self._is_back = asyncio.Event()
        """Set when the connection is back, while `ensure_at_last` waits."""

    async def ensure(self) -> None:
        """Have stream and consumer exist as configured. Raises Unavailable where NATS can't do it now."""
        config = _stream_config(self._settings)
        error = await self._api(f"STREAM.CREATE.{STREAM}", config)
        if error == _EXISTS_OTHERWISE:
            error = await self._api(f"STREAM.UPDATE.{STREAM}", config)
        error = error or await self._api(f"CONSUMER.CREATE.{STREAM}.{CONSUMER}", _consumer_config(self._settings))
        if error:
            raise Unavailable(f"job stream: JetStream said error {error}")

    async def ensure_at_last(self) -> None:
        """Return once `ensure` has worked, however long that takes."""
        pause = _FIRST_BACKOFF_SECONDS
        with self._connection.on_reconnect(self._is_back.set):
            while True:
                try:
                    await self.ensure()
                except Unavailable as error:
                    log.warning("bus.stream_unavailable", **{fields.ERROR: str(error)})
                    self._is_back.clear()
                    await is_set_within(self._is_back, pause)
                    pause = min(pause * 2, _LONGEST_BACKOFF_SECONDS)
                else:
                    return

    async def clear(self, shard: str) -> None:
        """Remove all jobs of a shard from the stream, also those in hand.

        Raises Unavailable where NATS can't do it now.
        """
        error = await self._api(f"STREAM.PURGE.{STREAM}", {"filter": jobs_of(shard)})
        if error:
            raise Unavailable(f"job stream: JetStream said error {error}")

    async def _api(self, call: str, body: JsonObject) -> int:
        """The error code of one JetStream API call; 0 where it worked."""
        answer = loads(await self._connection.request(f"$JS.API.{call}", dumps(body), timeout_seconds=_API_TIMEOUT_SECONDS))
        error = answer.get("error")
        if error:
            log.info("bus.stream_call_refused", **{fields.METHOD: call, fields.ERROR: error.get("description")})
        return int(error.get("err_code") or error["code"]) if error else 0


def _stream_config(settings: StreamSettings) -> JsonObject:
    return {
        "name": STREAM,
        "subjects": [ALL_JOBS],
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
    }


def _consumer_config(settings: StreamSettings) -> JsonObject:
    return {
        "stream_name": STREAM,
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
