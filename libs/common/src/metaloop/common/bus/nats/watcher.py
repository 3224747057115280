"""A watcher's link over NATS."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager

from metaloop.common.bus.links import Leads, WatcherHandler
from metaloop.common.bus.messages import ClaimRequest, Presence, RelatedRequest, Renewal
from metaloop.common.bus.nats.chunks import ChunkJoiner
from metaloop.common.bus.nats.connection import Connection, Message
from metaloop.common.bus.nats.offers import JobOffers
from metaloop.common.bus.nats.parts import replying
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.bus.nats.stream_owner import claim_refusal, is_foreign, other_cluster
from metaloop.common.bus.nats.subjects import lease_of
from metaloop.common.errors import NobodyThere, OtherCluster
from metaloop.common.job import ControllerId, Job, UnknownVersion
from metaloop.common.json import dumps
from metaloop.common.observation import Busy, reply_to_pieces
from metaloop.common.report import SyncReport
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_OWNER_TIMEOUT_SECONDS = 0.3
_REFUSED_SECONDS = 0.5
"""After how long a worker of another version gives a job back, to any worker."""


class NatsWatcherLink:
    """A `WatcherLink`."""

    def __init__(self, connection: Connection, stream: StreamSettings, *, shard: str) -> None:
        self._connection = connection
        self._stream = JobStream(connection, stream)
        self._subjects = self._stream.subjects
        self._shard = shard
        self._offers: JobOffers | None = None
        """Where jobs are offered, within `serving`."""

    async def check(self) -> None:
        """Return where NATS and its JetStream answer now. Raises Unavailable where they don't."""
        await self._connection.check()

    async def check_stream(self) -> None:
        """Return unless the job stream is another cluster's, as it was found to be before.

        Raises OtherCluster, or Unavailable where that can't be told now.
        """
        await self._stream.check_owner()

    def on_reconnect(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `listener` called after each reconnection, for the length of the block."""
        return self._connection.on_reconnect(listener)

    @asynccontextmanager
    async def serving(self, handler: WatcherHandler, *, leads: Leads) -> AsyncIterator[None]:
        """Have `handler` called with what workers and the server say, for the length of the block."""
        offers = JobOffers(self._connection, self._stream, handler.take_outcome)
        async with offers.listening(), self._hearing(handler), self._answering(handler, leads):
            self._offers = offers
            try:
                yield
            finally:
                self._offers = None

    async def offer(self, job: Job) -> None:
        """Publish a job. Raises RuntimeError outside of `serving`."""
        if self._offers is None:
            raise RuntimeError("a job was offered while nobody is served")
        await self._offers.offer(job)

    async def held_leases(self, *, wait_seconds: float) -> list[Renewal]:
        """What workers say that they hold, as far as they answer in time.

        Raises Unavailable where nobody can be asked.
        """
        answers: list[Renewal] = []
        inbox = self._connection.new_inbox()

        async def take(message: Message) -> None:
            if message.data:  # nothing in it: the server says that nobody is there
                answers.append(Renewal.from_bytes(message.data))

        async with self._connection.listening(inbox, take):
            await self._connection.publish(self._subjects.held(self._shard), b"", reply=inbox)
            await asyncio.sleep(wait_seconds)
        return answers

    async def ensure_stream(self) -> None:
        """Return once stream and consumer are there, however long that takes."""
        await self._stream.ensure_at_last()

    async def clear_stream(self) -> None:
        """Remove all jobs of the shard. Raises Unavailable where NATS can't do it now."""
        await self._stream.clear(self._shard)

    async def is_owned(self, controller: ControllerId) -> bool:
        """Whether a watcher owns a controller. Raises Unavailable where one listens that doesn't answer in time."""
        try:
            await self._connection.request(self._subjects.owner(controller), b"", timeout_seconds=_OWNER_TIMEOUT_SECONDS)
        except NobodyThere:
            return False
        return True

    @asynccontextmanager
    async def owning(self, controller: ControllerId, *, leads: Leads) -> AsyncIterator[None]:
        """Answer watchers that ask for a controller's owner, for the length of the block and while this one `leads`."""

        async def answer(message: Message) -> None:
            if message.reply and leads():
                await self._connection.publish(message.reply, b"")

        async with self._connection.listening(self._subjects.owner(controller), answer):
            yield

    async def announce_presence(self, presence: Presence) -> None:
        """Tell the shard's other watchers of this one. Raises Unavailable where too much waits to be sent."""
        await self._connection.publish(self._subjects.presence(self._shard), presence.to_bytes())

    @asynccontextmanager
    async def on_presence(self, listener: Callable[[Presence], None]) -> AsyncIterator[None]:
        """Have `listener` called with each announced presence in the shard, for the length of the block."""

        async def hear(message: Message) -> None:
            listener(Presence.from_bytes(message.data))

        async with self._connection.listening(self._subjects.presence(self._shard), hear):
            yield

    async def announce_resignation(self) -> None:
        """Tell the standbys of the shard that its Lease is free. Raises Unavailable where too much waits to be sent."""
        await self._connection.publish(self._subjects.resigned(self._shard), b"")

    @asynccontextmanager
    async def on_resignation(self, listener: Callable[[], None]) -> AsyncIterator[None]:
        """Have `listener` called whenever a leader of the shard resigns, for the length of the block."""

        async def hear(_: Message) -> None:
            listener()

        async with self._connection.listening(self._subjects.resigned(self._shard), hear):
            yield

    @asynccontextmanager
    async def _hearing(self, handler: WatcherHandler) -> AsyncIterator[None]:
        """Renewals, reports and receipts."""

        async def renewal(message: Message) -> None:
            lost = handler.take_renewal(Renewal.from_bytes(message.data))
            await self._connection.publish(message.reply, dumps(list(lost)))

        reports = ChunkJoiner()

        async def report(message: Message) -> None:
            whole = reports.whole(message.data)
            if whole is None:
                return
            try:
                handler.take_report(SyncReport.from_bytes(whole))
            except UnknownVersion as error:  # the lease ends, and the key is synced again
                log.warning("bus.report_refused", **{fields.ERROR: str(error)})

        async def receipt(message: Message) -> None:
            handler.take_receipt(lease_of(message.subject))

        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._connection.listening(self._subjects.renew(self._shard), renewal))
            await stack.enter_async_context(self._connection.listening(self._subjects.report(self._shard), report))
            await stack.enter_async_context(self._connection.listening(self._subjects.receipt(self._shard, "*"), receipt))
            yield

    @asynccontextmanager
    async def _answering(self, handler: WatcherHandler, leads: Leads) -> AsyncIterator[None]:
        """Claims and related objects, whose replies may be large."""

        def claim(wire: bytes) -> Sequence[bytes]:
            try:
                request = ClaimRequest.from_bytes(wire)
            except UnknownVersion as error:
                log.warning("bus.claim_refused", **{fields.ERROR: str(error)})
                return reply_to_pieces(Busy(retry_seconds=_REFUSED_SECONDS))
            if self._is_foreign(request.cluster):
                return (claim_refusal(self._stream.cluster),)
            if self._stream.is_refused:
                return ()
            return reply_to_pieces(handler.answer_claim(request))

        def related(request: bytes) -> Sequence[bytes]:
            return (handler.answer_related(RelatedRequest.from_bytes(request)).to_bytes(),)

        async with (
            replying(self._connection, self._subjects.claim(self._shard), claim, leads=leads),
            replying(self._connection, self._subjects.related(self._shard), related, leads=leads),
        ):
            yield

    def _is_foreign(self, theirs: str) -> bool:
        """Whether another cluster's worker sent a claim: then it has jobs of our stream, or we put ours into its one.

        Which of these, the stream tells; until then nothing is offered and granted.
        """
        if not is_foreign(theirs, ours=self._stream.cluster):
            return False
        self._stream.refuse(OtherCluster(other_cluster(self._subjects.stream, ours=self._stream.cluster, theirs=theirs)))
        return True
