"""The watcher's end of the job stream: offer a job, and learn whether it is queued.

An offer doesn't wait for its outcome, which is told later in a call: a task for each offer would cost more than the
job. An outcome may never come (a server that crashed says nothing), so the watcher keeps deadlines.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from metaloop.common.bus.messages import OfferOutcome
from metaloop.common.bus.nats.connection import Connection, Message, status_of
from metaloop.common.bus.nats.stream import JobStream
from metaloop.common.errors import Unavailable
from metaloop.common.job import Job, JobKey
from metaloop.common.json import JSONDecodeError, loads
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_MOST_OUTSTANDING = 10_000
_FULL_SUBJECT = "maximum messages per subject exceeded"


OutcomeListener: TypeAlias = Callable[[JobKey, OfferOutcome], None]


class JobOffers:
    """Offers jobs to the stream, and tells `on_outcome` what became of each."""

    def __init__(self, connection: Connection, stream: JobStream, on_outcome: OutcomeListener) -> None:
        self._connection = connection
        self._stream = stream
        self._on_outcome = on_outcome
        self._inbox = connection.new_inbox()
        self._offers = 0
        self._outstanding: dict[str, JobKey] = {}
        """Keys by the last token of their reply subject, oldest first."""

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Hear of outcomes for the length of the block. Jobs are offered within it."""
        return self._connection.listening(f"{self._inbox}.*", self._take_outcome)

    async def offer(self, job: Job) -> None:
        """Publish a job.

        Its outcome is told at once where the connection is down or the stream isn't ours; else later, or never.
        """
        if not self._connection.is_connected or self._stream.is_refused:
            self._on_outcome(job.key, OfferOutcome.UNKNOWN)
            return
        self._offers += 1
        token = str(self._offers)
        self._outstanding[token] = job.key
        if len(self._outstanding) > _MOST_OUTSTANDING:
            del self._outstanding[next(iter(self._outstanding))]
        try:
            await self._connection.publish(self._stream.subjects.job(job.key, job.shard), job.to_bytes(), reply=f"{self._inbox}.{token}")
        except Unavailable as error:
            log.warning("bus.offer_failed", **{fields.KEY: str(job.key), fields.ERROR: str(error)})
            self._outstanding.pop(token, None)
            self._on_outcome(job.key, OfferOutcome.UNKNOWN)

    async def _take_outcome(self, message: Message) -> None:
        key = self._outstanding.pop(message.subject.rpartition(".")[2], None)
        if key is not None:
            self._on_outcome(key, outcome_of(message))


def outcome_of(message: Message) -> OfferOutcome:
    """What the server's answer to a publish means."""
    if status_of(message):
        return OfferOutcome.UNKNOWN  # no such stream: it was deleted
    if b'"error"' not in message.data:
        return OfferOutcome.QUEUED  # the common case, without parsing
    try:
        description = loads(message.data)["error"]["description"]
    except (JSONDecodeError, KeyError, TypeError):
        return OfferOutcome.UNKNOWN
    # The text tells: a stream that reached `max_bytes` refuses with the same code.
    return OfferOutcome.ALREADY_QUEUED if description == _FULL_SUBJECT else OfferOutcome.UNKNOWN
