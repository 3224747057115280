"""A worker's link over NATS."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace

from metaloop.common.bus.links import JobHandler, JobSource, OnLease, Room, unheeded
from metaloop.common.bus.messages import ClaimRequest, Lost, RelatedRequest, Renewal
from metaloop.common.bus.nats import chunks
from metaloop.common.bus.nats.connection import Connection, Message
from metaloop.common.bus.nats.parts import Request, ask
from metaloop.common.bus.nats.pull import NatsJobSource
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.bus.nats.stream_owner import claim_headers, other_cluster, refusing_cluster
from metaloop.common.bus.nats.subjects import shard_of
from metaloop.common.errors import OtherCluster
from metaloop.common.json import loads
from metaloop.common.observation import ClaimReply, Granted, Related, ReplyReader, related_from_wire, terms_in
from metaloop.common.report import SyncReport

_RENEW_TIMEOUT_SECONDS = 2.0


class NatsWorkerLink:
    """A `WorkerLink`."""

    def __init__(self, connection: Connection, stream: StreamSettings) -> None:
        self._connection = connection
        self._stream = JobStream(connection, stream)
        self._subjects = self._stream.subjects
        self._claim_headers = claim_headers(stream.cluster)

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
        asked = Request(subject=self._subjects.claim(shard), body=request.to_bytes(), headers=self._claim_headers)
        try:
            reply = await ask(self._connection, asked, reading=_ReadingClaim(self._refusal, on_lease))
        except OtherCluster as refusal:
            self._stream.refuse(refusal)
            raise
        return replace(reply, shard=shard) if isinstance(reply, Granted) else reply

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
    """Reads the reply to a claim. The terms of its lease are told as soon as they have arrived."""

    def __init__(self, refusal: Callable[[str], OtherCluster], on_lease: OnLease) -> None:
        self._refusal = refusal
        self._on_lease = on_lease
        self._reader = ReplyReader()
        self._has_begun = False

    def feed(self, part: bytes) -> None:
        """Read the next part. Raises OtherCluster where the watcher of another cluster refuses."""
        if not self._has_begun:
            self._has_begun = True
            self._begin(part)
        self._reader.feed(part)

    def reply(self) -> ClaimReply:
        """The reply."""
        return self._reader.reply()

    def _begin(self, beginning: bytes) -> None:
        if theirs := refusing_cluster(beginning):
            raise self._refusal(theirs)
        terms = terms_in(beginning)
        if terms is not None:
            self._on_lease(terms)


class _ReadingRelated:
    """Reads related objects."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def feed(self, part: bytes) -> None:
        """Keep the next part."""
        self._parts.append(part)

    def reply(self) -> Related:
        """The related objects."""
        return related_from_wire(loads(b"".join(self._parts)))
