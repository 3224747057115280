"""The workers' end of the job stream: pull as many jobs as there is room for, finish them or give them back.

A pull asks the server for up to N jobs within two seconds. A few **lanes** carry one pull each: room that becomes free
during one pull is filled by another at once. All lanes together never expect more jobs than there is room for. So a
delivered job can run, and no job lies in one worker's memory while another worker is idle.
"""

import asyncio
from dataclasses import dataclass

from metaloop.common.bus.links import JobHandler, Room
from metaloop.common.bus.nats.connection import NO_RESPONDERS, Connection, Message, status_of
from metaloop.common.bus.nats.stream import CONSUMER, JobStream
from metaloop.common.bus.nats.subjects import Subjects
from metaloop.common.errors import Unavailable
from metaloop.common.job import Job, UnknownVersion
from metaloop.common.json import dumps
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_LANES = 4
_EXPIRES_SECONDS = 2.0
# A server that crashed never ends a pull: then we do, a little later than it would have.
_GRACE_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_REFUSED_SECONDS = 0.5
"""After how long a job of another version is delivered again, to any worker."""
_NANOSECONDS = 1_000_000_000

_EXPIRED = "408"
_NO_MESSAGES = "404"


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsDelivery:
    """A message of the stream in our hands."""

    job: Job
    connection: Connection
    subjects: Subjects
    ack_subject: str

    async def finish(self, *, lease: str) -> None:
        """Acknowledge the message.

        The reply subject has the server's confirmation go to the watcher: that is the receipt.
        """
        receipt = self.subjects.receipt(self.job.shard, lease) if lease else ""
        self.connection.publish_soon(self.ack_subject, b"+ACK", reply=receipt)

    async def give_back(self, *, after_seconds: float = 0.0) -> None:
        """Refuse the message, with a delay."""
        delay = dumps({"delay": int(after_seconds * _NANOSECONDS)})
        await self.connection.publish(self.ack_subject, b"-NAK " + delay if after_seconds > 0 else b"-NAK")

    async def keep_alive(self) -> None:
        """Say that work is in progress: `ack_wait` begins anew."""
        await self.connection.publish(self.ack_subject, b"+WPI")


class Lane:
    """Carries one pull at a time: `expected` jobs may still arrive on it."""

    def __init__(self, source: "NatsJobSource") -> None:
        self._source = source
        self._inbox = source.connection.new_inbox()
        self._timer: asyncio.TimerHandle | None = None
        self.expected = 0

    async def start(self) -> None:
        """Begin to listen for what pulls bring."""
        await self._source.connection.subscribe(self._inbox, self._take)

    async def pull(self, count: int) -> None:
        """Ask for up to `count` jobs."""
        self.expected = count
        self._timer = asyncio.get_running_loop().call_later(_EXPIRES_SECONDS + _GRACE_SECONDS, self.end)
        body = dumps({"batch": count, "expires": int(_EXPIRES_SECONDS * _NANOSECONDS)})
        try:
            await self._source.connection.publish(self._source.pull_subject, body, reply=self._inbox)
        except Unavailable:
            self.end()
            self._source.fail("the pull could not be sent")

    def end(self) -> None:
        """Expect no more of this pull."""
        if self._timer is not None:
            self._timer.cancel()
        self.expected = 0
        self._source.wake()

    async def _take(self, message: Message) -> None:
        status = status_of(message)
        if status:
            self.end()
            if status not in (_EXPIRED, _NO_MESSAGES):
                self._source.fail("no consumer" if status == NO_RESPONDERS else f"status {status}")
            return
        if self.expected:
            self.expected -= 1
            if self.expected == 0:
                self.end()
        await self._source.deliver(message)


class NatsJobSource:
    """Keeps `room()` jobs asked for, and calls `on_job` with each that arrives."""

    def __init__(self, connection: Connection, stream: JobStream, *, room: Room, on_job: JobHandler) -> None:
        self.connection = connection
        self.pull_subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream.subjects.stream}.{CONSUMER}"
        self._stream = stream
        self._room = room
        self._on_job = on_job
        self._lanes = [Lane(self) for _ in range(_LANES)]
        self._bell = asyncio.Event()
        self._failure = ""
        """Why pulls don't work; empty while they do."""
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    async def run(self) -> None:
        """Pull until cancelled, also across crashes of the server, and when somebody deleted the stream."""
        for lane in self._lanes:
            await lane.start()
        with self.connection.on_reconnect(self._forget_pulls):
            await self._stream.ensure_at_last()
            while True:
                if self._failure or self._stream.is_refused:
                    await self._mend()
                self._bell.clear()
                await self._fill_room()
                await self._bell.wait()

    def wake(self) -> None:
        """Look again: there may be more room than before."""
        self._bell.set()

    def fail(self, reason: str) -> None:
        """Note that pulls don't work now. The next is made after a pause, once the stream is there."""
        self._failure = reason
        self._bell.set()

    async def deliver(self, message: Message) -> None:
        """Hand on one job.

        A message of another version comes again: a worker that knows it may take it. One that can't be read is removed
        from the stream, since no worker could read it.
        """
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        try:
            job = Job.from_bytes(message.data)
        except UnknownVersion as error:
            log.warning("bus.job_refused", **{fields.SUBJECT: message.subject, fields.ERROR: str(error)})
            await self.connection.publish(message.reply, b"-NAK " + dumps({"delay": int(_REFUSED_SECONDS * _NANOSECONDS)}))
            return
        except (ValueError, KeyError, TypeError) as error:
            log.warning("bus.unreadable_job", **{fields.SUBJECT: message.subject, fields.ERROR: repr(error)})
            await self.connection.publish(message.reply, b"+TERM")
            return
        await self._on_job(NatsDelivery(job=job, connection=self.connection, subjects=self._stream.subjects, ack_subject=message.reply))

    async def _fill_room(self) -> None:
        expected = sum(lane.expected for lane in self._lanes)
        wanted = self._room() - expected
        idle = next((lane for lane in self._lanes if lane.expected == 0), None)
        # Each pull is a message too: while one is under way, the next waits until it would ask for as much again.
        if wanted >= max(1, expected) and idle is not None and self.connection.is_connected:
            await idle.pull(wanted)

    def _forget_pulls(self) -> None:
        """End all pulls: the server forgot them with the old connection."""
        for lane in self._lanes:
            lane.end()

    async def _mend(self) -> None:
        if self._failure:
            log.warning("bus.pull_failed", **{fields.REASON: self._failure})
        self._failure = ""
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(self._pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
        await self._stream.ensure_at_last()
