"""The watcher's end of the job stream: offer a job, and learn whether it is queued.

An offer returns at once and its outcome is told later, in a call: at a thousand jobs a second a task for each would cost more than the
job. An outcome may never come (a server that crashed says nothing), so who offers keeps a deadline.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import TypeAlias

from metaloop.common.bus.connect import Bus, Message, status_of
from metaloop.common.errors import Unavailable
from metaloop.common.job import Job, JobKey
from metaloop.common.json import JSONDecodeError, loads
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_MOST_OUTSTANDING = 10_000
_FULL_SUBJECT = "maximum messages per subject exceeded"


class Outcome(Enum):
    """What became of an offered job."""

    QUEUED = "queued"
    ALREADY_QUEUED = "already queued"
    """The stream still holds an earlier message of the key, waiting or in a worker's hands: this offer was refused."""
    UNKNOWN = "unknown"
    """It may be stored or not: offer it again, since a second offer of a queued job is only refused."""


OutcomeListener: TypeAlias = Callable[[JobKey, Outcome], None]


class JobPublisher:
    """Offers jobs to the stream, and tells `on_outcome` what became of each."""

    def __init__(self, bus: Bus, on_outcome: OutcomeListener) -> None:
        self._bus = bus
        self._on_outcome = on_outcome
        self._inbox = bus.new_inbox()
        self._offers = 0
        self._outstanding: dict[str, JobKey] = {}
        """Keys by the last token of their reply subject, oldest first."""

    def listening(self) -> AbstractAsyncContextManager[None]:
        """Hears of outcomes for the length of the block: jobs are offered within it."""
        return self._bus.listening(f"{self._inbox}.*", self._take_outcome)

    async def offer(self, job: Job) -> None:
        """Publish a job; its outcome is told later, or never."""
        if not self._bus.is_connected:
            self._on_outcome(job.key, Outcome.UNKNOWN)
            return
        self._offers += 1
        token = str(self._offers)
        self._outstanding[token] = job.key
        if len(self._outstanding) > _MOST_OUTSTANDING:
            del self._outstanding[next(iter(self._outstanding))]
        try:
            await self._bus.publish(job.subject, job.to_bytes(), reply=f"{self._inbox}.{token}")
        except Unavailable as error:
            log.warning("bus.offer_failed", **{fields.KEY: str(job.key), fields.ERROR: str(error)})
            self._outstanding.pop(token, None)
            self._on_outcome(job.key, Outcome.UNKNOWN)

    async def _take_outcome(self, message: Message) -> None:
        key = self._outstanding.pop(message.subject.rpartition(".")[2], None)
        if key is not None:
            self._on_outcome(key, outcome_of(message))


def outcome_of(message: Message) -> Outcome:
    """What the server's answer to a publish means."""
    if status_of(message):
        return Outcome.UNKNOWN  # no such stream: it was deleted
    if b'"error"' not in message.data:
        return Outcome.QUEUED  # the common case, without parsing
    try:
        description = loads(message.data)["error"]["description"]
    except (JSONDecodeError, KeyError, TypeError):
        return Outcome.UNKNOWN
    # The text tells: a stream that reached `max_bytes` refuses with the same code.
    return Outcome.ALREADY_QUEUED if description == _FULL_SUBJECT else Outcome.UNKNOWN
