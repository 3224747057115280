"""The workers' end of the job stream: pull jobs into free slots, finish them or give them back.

A pull asks the server for up to N jobs within two seconds. A few **lanes** carry one pull each, so that a slot that frees up while a
pull is under way can be asked for at once. What all lanes still expect never exceeds the free slots: a job that is delivered has
a place to run, and no job lies in one worker's memory while another is idle.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.bus.connect import NO_RESPONDERS, Bus, Message, status_of
from metaloop.common.bus.stream import CONSUMER, STREAM, JobStream
from metaloop.common.errors import Unavailable
from metaloop.common.job import Job
from metaloop.common.json import dumps
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_PULL = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{CONSUMER}"
_LANES = 4
_EXPIRES_SECONDS = 2.0
# A server that crashed never ends a pull: then we do, a little later than it would have.
_GRACE_SECONDS = 0.5
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0
_NANOSECONDS = 1_000_000_000

_EXPIRED = "408"
_NO_MESSAGES = "404"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A job in our hands, until it is finished or given back, or until we say nothing of it for `ack_wait`."""

    job: Job
    bus: Bus
    ack_subject: str

    async def finish(self, *, receipt_to: str = "") -> None:
        """Remove the job from the stream; the *server* then sends its receipt to `receipt_to`."""
        await self.bus.publish(self.ack_subject, b"+ACK", reply=receipt_to)

    async def give_back(self, *, after_seconds: float = 0.0) -> None:
        """Have the job delivered again, to anybody, after a delay."""
        delay = dumps({"delay": int(after_seconds * _NANOSECONDS)})
        await self.bus.publish(self.ack_subject, b"-NAK " + delay if after_seconds > 0 else b"-NAK")

    async def keep(self) -> None:
        """Say that we are still at it: `ack_wait` begins anew."""
        await self.bus.publish(self.ack_subject, b"+WPI")


JobHandler: TypeAlias = Callable[[Delivery], Awaitable[None]]
Room: TypeAlias = Callable[[], int]


class Lane:
    """Carries one pull at a time: `expected` jobs may still arrive on it."""

    def __init__(self, source: "JobSource") -> None:
        self._source = source
        self._inbox = source.bus.new_inbox()
        self._timer: asyncio.TimerHandle | None = None
        self.expected = 0

    async def start(self) -> None:
        """Begin to listen for what the pulls bring."""
        await self._source.bus.subscribe(self._inbox, self._take)

    async def pull(self, count: int) -> None:
        """Ask for up to `count` jobs."""
        self.expected = count
        self._timer = asyncio.get_running_loop().call_later(_EXPIRES_SECONDS + _GRACE_SECONDS, self.end)
        body = dumps({"batch": count, "expires": int(_EXPIRES_SECONDS * _NANOSECONDS)})
        try:
            await self._source.bus.publish(_PULL, body, reply=self._inbox)
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


class JobSource:
    """Keeps `room()` jobs asked for, and calls `on_job` with each that arrives."""

    def __init__(self, bus: Bus, stream: JobStream, *, room: Room, on_job: JobHandler) -> None:
        self.bus = bus
        self._stream = stream
        self._room = room
        self._on_job = on_job
        self._lanes = [Lane(self) for _ in range(_LANES)]
        self._bell = asyncio.Event()
        self._trouble = ""
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    async def run(self) -> None:
        """Pull for ever: also across crashes of the server, and when somebody deleted the stream."""
        for lane in self._lanes:
            await lane.start()
        with self.bus.on_reconnect(self._forget_pulls):
            await self._stream.ensure_at_last()
            while True:
                if self._trouble:
                    await self._mend()
                self._bell.clear()
                await self._pull_into_free_slots()
                await self._bell.wait()

    def wake(self) -> None:
        """Look again: there may be more room than before."""
        self._bell.set()

    def fail(self, reason: str) -> None:
        """Note that pulls can't work now: the next is made after a pause, and after the stream was looked after."""
        self._trouble = reason
        self._bell.set()

    async def deliver(self, message: Message) -> None:
        """Hand on one job; a message that is none is removed for good, since no worker will ever read it."""
        self._pause_seconds = _FIRST_PAUSE_SECONDS
        try:
            job = Job.from_bytes(message.data)
        except (ValueError, KeyError, TypeError) as error:
            log.warning("bus.unreadable_job", **{fields.SUBJECT: message.subject, fields.ERROR: repr(error)})
            await self.bus.publish(message.reply, b"+TERM")
            return
        await self._on_job(Delivery(job=job, bus=self.bus, ack_subject=message.reply))

    async def _pull_into_free_slots(self) -> None:
        expected = sum(lane.expected for lane in self._lanes)
        wanted = self._room() - expected
        idle = next((lane for lane in self._lanes if lane.expected == 0), None)
        # Each pull is a message too: while one is under way, the next waits until it would ask for as much again.
        if wanted >= max(1, expected) and idle is not None and self.bus.is_connected:
            await idle.pull(wanted)

    def _forget_pulls(self) -> None:
        """The server forgot them with the old connection."""
        for lane in self._lanes:
            lane.end()

    async def _mend(self) -> None:
        log.warning("bus.pull_failed", **{fields.REASON: self._trouble})
        self._trouble = ""
        await asyncio.sleep(self._pause_seconds)
        self._pause_seconds = min(self._pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
        await self._stream.ensure_at_last()
