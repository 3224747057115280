"""The two links of `metaloop.common.bus.links` over the model's broker."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Final

from metaloop.common.bus.links import ANSWER_SECONDS, JobHandler, JobSource, Leads, OnLease, Room, WatcherHandler, unheeded
from metaloop.common.bus.messages import ClaimRequest, Lost, OfferOutcome, Presence, RelatedRequest, Renewal
from metaloop.common.crashes import crash_logged
from metaloop.common.errors import NobodyThere, Unavailable
from metaloop.common.job import ControllerId, Job
from metaloop.common.json import dumps, loads
from metaloop.common.observation import (
    CachedGrant,
    ClaimReply,
    Granted,
    Related,
    related_from_wire,
    reply_from_bytes,
    reply_to_bytes,
    terms_in,
)
from metaloop.common.report import SyncReport
from metaloop.common.waiting import is_set_within
from metaloop.simulation.bus.broker import Reply, Wire
from metaloop.simulation.bus.stream import Entry

PART_BYTES: Final = 64 * 1024
"""A larger reply is handed out in parts."""
_EXPECTED_SECONDS: Final = 2.5
"""How long a job is waited for that was sent here."""
_PULL_SECONDS: Final = 2.0
"""How often a worker asks for jobs again: what it asked before may be lost."""
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 2.0
_OWNER_SECONDS: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLink:
    """What both ends have in common."""

    wire: Wire

    async def check(self) -> None:
        """Return where the broker answers now. Raises Unavailable."""
        await self.wire.ask_broker("check", _nothing)

    async def check_stream(self) -> None:
        """Return: the model's broker has one cluster's jobs alone."""

    def on_reconnect(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `listener` called after each reconnection, for the length of the block."""
        return self.wire.on_reconnect(listener)

    async def ensure_stream(self) -> None:
        """Return once the job stream is there, however long that takes."""
        pause_seconds = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self.wire.ask_broker("ensure", self.wire.broker.stream.ensure)
            except Unavailable:
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
            else:
                return


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDelivery:
    """A job in a worker's hands."""

    job: Job
    wire: Wire
    entry: Entry
    delivery: int

    async def finish(self, *, lease: str) -> None:
        """Remove the job; then the watcher gets a receipt."""
        self.wire.send(("finish", str(self.job.key)), lambda: self._finish(lease))

    async def give_back(self, *, after_seconds: float = 0.0) -> None:
        """Have the job delivered again."""
        stream = self.wire.broker.stream
        self.wire.send(("give back", str(self.job.key)), lambda: stream.give_back(self.entry, self.delivery, after_seconds))

    async def keep_alive(self) -> None:
        """Keep the job."""
        self.wire.send(("keep alive", str(self.job.key)), lambda: self.wire.broker.stream.keep_alive(self.entry, self.delivery))

    def _finish(self, lease: str) -> None:
        self.wire.broker.stream.finish(self.entry)
        if lease:
            self.wire.broker.publish(self.wire, ("receipt", self.job.shard), lease.encode(), _no_reply)


class MemoryJobSource:
    """Delivers jobs to a worker as long as there is room for them."""

    def __init__(self, link: MemoryLink, *, room: Room, on_job: JobHandler) -> None:
        self._link = link
        self._room = room
        self._on_job = on_job
        self._expected: set[int] = set()
        """The deliveries that are under way, or wait to be taken."""
        self._deliveries = 0
        self._arrived: asyncio.Queue[tuple[int, MemoryDelivery]] = asyncio.Queue()

    @property
    def room(self) -> int:
        """How many more jobs may be sent here."""
        return self._room() - len(self._expected) if self._link.wire.is_connected else 0

    async def run(self) -> None:
        """Deliver jobs until cancelled."""
        stream, wakened = self._link.wire.broker.stream, asyncio.Event()
        try:
            with self._link.on_reconnect(wakened.set):
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._keep_joined(wakened))
                    while True:
                        number, delivery = await self._arrived.get()
                        await self._on_job(delivery)
                        self._expected.discard(number)
                        self.wake()
        finally:
            stream.leave(self)

    def wake(self) -> None:
        """Look at the room again."""
        self._link.wire.send(("pull",), self._link.wire.broker.stream.deliver)

    def deliver(self, entry: Entry) -> None:
        """A job is sent here."""
        self._deliveries += 1
        number, delivery, wire = self._deliveries, entry.deliveries, self._link.wire
        self._expected.add(number)
        job = Job.from_bytes(entry.wire)
        taken = MemoryDelivery(job=job, wire=wire, entry=entry, delivery=delivery)
        wire.broker.network.later(_EXPECTED_SECONDS, self._give_up, number)
        wire.receive("stream", ("job", str(job.key)), lambda: self._arrived.put_nowait((number, taken)))

    async def _keep_joined(self, wakened: asyncio.Event) -> None:
        """Have the stream deliver here, also after the stream was lost."""
        while True:
            await self._link.ensure_stream()
            wakened.clear()
            while not wakened.is_set():
                self._link.wire.send(("pull",), lambda: self._pull(wakened))
                await is_set_within(wakened, _PULL_SECONDS)

    def _pull(self, wakened: asyncio.Event) -> None:
        """A pull arrives at the broker: where there is no stream, it has to be made again."""
        stream, wire = self._link.wire.broker.stream, self._link.wire
        if stream.exists:
            stream.join(self)
        else:
            wire.receive("broker", ("no stream",), wakened.set)

    def _give_up(self, number: int) -> None:
        if number in self._expected:
            self._expected.discard(number)
            self._link.wire.broker.stream.deliver()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWorkerLink(MemoryLink):
    """A `WorkerLink`."""

    def jobs(self, *, room: Room, on_job: JobHandler) -> JobSource:
        """A source of jobs."""
        return MemoryJobSource(self, room=room, on_job=on_job)

    async def claim(self, shard: str, request: ClaimRequest, *, on_lease: OnLease = unheeded) -> ClaimReply:
        """The watcher's reply to a claim. Raises NobodyThere or Unavailable."""
        answer = await self.wire.request(("claim", shard), request.to_bytes(), timeout_seconds=ANSWER_SECONDS)
        terms = terms_in(answer)
        if terms is not None:
            on_lease(terms)
        reply = reply_from_bytes(answer)
        return replace(reply, shard=shard) if isinstance(reply, Granted) else reply

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """The related objects of a parent. Raises NobodyThere or Unavailable."""
        return related_from_wire(loads(await self.wire.request(("related", shard), request.to_bytes(), timeout_seconds=ANSWER_SECONDS)))

    async def renew(self, shard: str, renewal: Renewal) -> Lost:
        """The leases that are lost. Raises NobodyThere or Unavailable."""
        return loads(await self.wire.request(("renew", shard), renewal.to_bytes(), timeout_seconds=ANSWER_SECONDS))

    async def report(self, shard: str, report: SyncReport) -> None:
        """Tell the watcher how a sync ended."""
        wire, message = self.wire, report.to_bytes()
        wire.send(("report", shard), lambda: wire.broker.publish(wire, ("report", shard), message, _no_reply))

    @asynccontextmanager
    async def answering_held(self, held_in: Callable[[str], Renewal]) -> AsyncIterator[None]:
        """Answer watchers by `held_in(shard)`, for the length of the block."""

        def answer(message: bytes, reply: Reply) -> None:
            reply(self.wire, held_in(message.decode()).to_bytes())

        with self.wire.listening(("held",), answer):
            yield


@dataclass(slots=True)
class _Serving:
    handler: WatcherHandler | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWatcherLink(MemoryLink):
    """A `WatcherLink`."""

    shard: str
    serves: _Serving = field(default_factory=_Serving)

    @asynccontextmanager
    async def serving(self, handler: WatcherHandler, *, leads: Leads) -> AsyncIterator[None]:
        """Have `handler` called with what workers and the server say, for the length of the block."""

        def claim(message: bytes, reply: Reply) -> None:
            request = ClaimRequest.from_bytes(message)
            answer = handler.answer_claim(request)
            for listener in self.wire.broker.on_grant if isinstance(answer, CachedGrant) else ():
                listener(self.wire.port, request.key)
            self._hand_out(reply, reply_to_bytes(answer), leads)

        def related(message: bytes, reply: Reply) -> None:
            self._hand_out(reply, handler.answer_related(RelatedRequest.from_bytes(message)).to_bytes(), leads)

        def renew(message: bytes, reply: Reply) -> None:
            reply(self.wire, dumps(list(handler.take_renewal(Renewal.from_bytes(message)))))

        def report(message: bytes, _: Reply) -> None:
            taken = SyncReport.from_bytes(message)
            handler.take_report(taken)
            for listener in self.wire.broker.on_report:
                listener(self.wire.port, taken)

        def receipt(message: bytes, _: Reply) -> None:
            handler.take_receipt(message.decode())

        with ExitStack() as stack:
            for name, heard in (("claim", claim), ("related", related), ("renew", renew), ("report", report), ("receipt", receipt)):
                stack.enter_context(self.wire.listening((name, self.shard), _guarded(heard)))
            stack.enter_context(self._offering(handler))
            yield

    async def offer(self, job: Job) -> None:
        """Publish a job. Raises RuntimeError outside of `serving`."""
        handler = self.serves.handler
        if handler is None:
            raise RuntimeError("a job was offered while nobody is served")
        if not self.wire.is_connected:
            handler.take_outcome(job.key, OfferOutcome.UNKNOWN)
            return
        wire, context = self.wire, copy_context()

        def arrive() -> None:
            outcome = wire.broker.stream.put(job)
            wire.receive("stream", ("outcome", str(job.key)), lambda: self._tell(handler, job, outcome), context)

        wire.send(("offer", str(job.key)), arrive)

    async def held_leases(self, *, wait_seconds: float) -> list[Renewal]:
        """What workers hold, as far as they answer in time."""
        answers: list[Renewal] = []
        wire = self.wire

        def answer(answerer: Wire, data: bytes) -> None:
            take = lambda: answers.append(Renewal.from_bytes(data))  # noqa: E731 - an act
            answerer.send(("answer", "held"), lambda: wire.receive(answerer.port.process, ("answer", "held"), take))

        wire.send(("held", self.shard), lambda: wire.broker.publish(wire, ("held",), self.shard.encode(), answer))
        await asyncio.sleep(wait_seconds)
        return answers

    async def clear_stream(self) -> None:
        """Remove all jobs of the shard. Raises Unavailable."""
        await self.wire.ask_broker("clear", lambda: self.wire.broker.stream.clear(self.shard))

    async def is_owned(self, controller: ControllerId) -> bool:
        """Whether a watcher owns a controller. Raises Unavailable where one listens that doesn't answer in time."""
        try:
            await self.wire.request(("owner", str(controller)), b"", timeout_seconds=_OWNER_SECONDS)
        except NobodyThere:
            return False
        return True

    @asynccontextmanager
    async def owning(self, controller: ControllerId, *, leads: Leads) -> AsyncIterator[None]:
        """Own a controller for the length of the block, and say so while this watcher `leads`."""

        def answer(_: bytes, reply: Reply) -> None:
            if leads():
                reply(self.wire, b"")

        with self.wire.listening(("owner", str(controller)), answer):
            yield

    async def announce_presence(self, presence: Presence) -> None:
        """Tell the shard's other watchers of this one."""
        wire, subject = self.wire, ("presence", self.shard)
        wire.send(subject, lambda: wire.broker.publish(wire, subject, presence.to_bytes(), _no_reply))

    @asynccontextmanager
    async def on_presence(self, listener: Callable[[Presence], None]) -> AsyncIterator[None]:
        """Have `listener` called with each announced presence, for the length of the block."""

        def hear(message: bytes, _: Reply) -> None:
            listener(Presence.from_bytes(message))

        with self.wire.listening(("presence", self.shard), _guarded(hear)):
            yield

    async def announce_resignation(self) -> None:
        """Tell the shard's other watchers that its leader resigned."""
        wire, subject = self.wire, ("resigned", self.shard)
        wire.send(subject, lambda: wire.broker.publish(wire, subject, b"", _no_reply))

    @asynccontextmanager
    async def on_resignation(self, listener: Callable[[], None]) -> AsyncIterator[None]:
        """Have `listener` called at each resignation, for the length of the block."""
        with self.wire.listening(("resigned", self.shard), lambda _message, _reply: listener()):
            yield

    @contextmanager
    def _offering(self, handler: WatcherHandler) -> Iterator[None]:
        self.serves.handler = handler
        try:
            yield
        finally:
            self.serves.handler = None

    def _tell(self, handler: WatcherHandler, job: Job, outcome: OfferOutcome) -> None:
        if self.serves.handler is handler:
            handler.take_outcome(job.key, outcome)

    def _hand_out(self, reply: Reply, body: bytes, leads: Leads) -> None:
        """Send a reply: at once, or in parts, for which the worker asks."""
        if len(body) <= PART_BYTES:
            reply(self.wire, body)
            return
        part = lambda: reply(self.wire, body) if leads() else None  # noqa: E731 - an act
        self.wire.send(("ticket", self.shard), lambda: self.wire.receive("worker", ("part", self.shard), part))


def _guarded(handler: Callable[[bytes, Reply], None]) -> Callable[[bytes, Reply], None]:
    """A handler whose failure is logged, and ends nothing."""

    def take(message: bytes, reply: Reply) -> None:
        with crash_logged("bus.handler_failed"):
            handler(message, reply)

    return take


def _nothing() -> None:
    """Ask for nothing but an answer."""


def _no_reply(_: Wire, __: bytes) -> None:
    """Drop an answer that nobody waits for."""
