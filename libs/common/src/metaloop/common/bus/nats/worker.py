"""A worker's link over NATS."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager

from metaloop.common.bus.links import JobHandler, JobSource, OnLease, Room, unheeded
from metaloop.common.bus.messages import ClaimRequest, Lost, RelatedRequest, Renewal
from metaloop.common.bus.nats import chunks
from metaloop.common.bus.nats.connection import Connection, Message
from metaloop.common.bus.nats.parts import Request, ask
from metaloop.common.bus.nats.pull import NatsJobSource
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.bus.nats.stream_owner import other_cluster, refusing_cluster
from metaloop.common.bus.nats.subjects import shard_of
from metaloop.common.errors import OtherCluster
from metaloop.common.json import loads
from metaloop.common.observation import ClaimReply, Granted, LeaseTerms, Related, ReplyReader, related_from_wire, reply_from_bytes, terms_in
from metaloop.common.report import SyncReport

_RENEW_TIMEOUT_SECONDS = 2.0


class NatsWorkerLink:
    """A `WorkerLink`."""

    def __init__(self, connection: Connection, stream: StreamSettings) -> None:
        self._connection = connection
        self._stream = JobStream(connection, stream)
        self._subjects = self._stream.subjects

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

    def jobs(self, *, room: Room, on_job: JobHandler) -> JobSource:
        """A source of jobs, which also sees to it that the stream is there."""
        return NatsJobSource(self._connection, self._stream, room=room, on_job=on_job)

    async def claim(self, shard: str, request: ClaimRequest, *, on_lease: OnLease = unheeded) -> ClaimReply:
        """The watcher's reply to a claim.

        Raises NobodyThere or Unavailable, and OtherCluster where the watcher of another cluster answers: then no more
        jobs are pulled until the stream is found to be ours.
        """
        asked = Request(subject=self._subjects.claim(shard), body=request.to_bytes(cluster=self._stream.cluster))
        try:
            return await ask(self._connection, asked, reading=_ReadingClaim(shard, self._refusal, on_lease))
        except OtherCluster as refusal:
            self._stream.refuse(refusal)
            raise

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """The related objects of a parent. Raises NobodyThere or Unavailable."""
        asked = Request(subject=self._subjects.related(shard), body=request.to_bytes())
        return await ask(self._connection, asked, reading=_ReadingRelated())

    async def renew(self, shard: str, renewal: Renewal) -> Lost:
        """The leases of `renewal` that are lost. Raises NobodyThere or Unavailable."""
        return loads(
            await self._connection.request(self._subjects.renew(shard), renewal.to_bytes(), timeout_seconds=_RENEW_TIMEOUT_SECONDS)
        )

    async def report(self, shard: str, report: SyncReport) -> None:
        """Tell the watcher how a sync ended. Raises Unavailable where too much waits to be sent."""
        chunks.publish_soon(self._connection, self._subjects.report(shard), report.to_bytes())

    @asynccontextmanager
    async def answering_held(self, held_in: Callable[[str], Renewal]) -> AsyncIterator[None]:
        """Answer each watcher that asks with `held_in(shard)`, for the length of the block."""

        async def reply(message: Message) -> None:
            await self._connection.publish(message.reply, held_in(shard_of(message.subject)).to_bytes())

        async with self._connection.listening(self._subjects.held_in_any_shard, reply):
            yield

    def _refusal(self, theirs: str) -> OtherCluster:
        return OtherCluster(other_cluster(self._subjects.stream, ours=self._stream.cluster, theirs=theirs))


class _ReadingClaim:
    """Reads a shard's reply to a claim. The terms of its lease are told as soon as they have arrived."""

    def __init__(self, shard: str, refusal: Callable[[str], OtherCluster], on_lease: OnLease) -> None:
        self._shard = shard
        self._refusal = refusal
        self._on_lease = on_lease
        self._reader: ReplyReader | None = None

    def whole(self, wire: bytes) -> ClaimReply:
        """The reply that came as one message. Raises OtherCluster where the watcher of another cluster refuses."""
        if theirs := refusing_cluster(wire):
            raise self._refusal(theirs)
        reply = reply_from_bytes(wire, shard=self._shard)
        if isinstance(reply, Granted):
            self._on_lease(LeaseTerms(lease=reply.lease, seconds=reply.lease_seconds))
        return reply

    def feed(self, part: bytes) -> None:
        """Read the next part."""
        if self._reader is None:
            self._reader = ReplyReader()
            terms = terms_in(part)
            if terms is not None:
                self._on_lease(terms)
        self._reader.feed(part)

    def reply(self) -> ClaimReply:
        """The reply. Raises ValueError where no part was fed."""
        if self._reader is None:
            raise ValueError("a reply without parts")
        return self._reader.reply(shard=self._shard)


class _ReadingRelated:
    """Reads related objects."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def whole(self, wire: bytes) -> Related:
        """The related objects that came as one message."""
        return related_from_wire(loads(wire))

    def feed(self, part: bytes) -> None:
        """Keep the next part."""
        self._parts.append(part)

    def reply(self) -> Related:
        """The related objects."""
        return related_from_wire(loads(b"".join(self._parts)))
