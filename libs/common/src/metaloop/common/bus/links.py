"""The two ends of the bus as protocols: `WorkerLink` for a worker, `WatcherLink` for the watcher of one shard."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Final, Protocol, TypeAlias

from metaloop.common.bus.messages import ClaimRequest, Lost, OfferOutcome, Presence, RelatedRequest, Renewal
from metaloop.common.job import ControllerId, Job, JobKey
from metaloop.common.observation import CachedClaimReply, CachedRelated, ClaimReply, LeaseTerms, Related
from metaloop.common.report import SyncReport

ANSWER_SECONDS: Final = 2.0
"""A claim, or a question for related objects, waits so long for its reply, and for each part of a large one."""

Leads: TypeAlias = Callable[[], bool]
"""Whether a watcher leads its shard at this moment."""


class Link(Protocol):
    """What both ends have in common: one connection, which comes back by itself.

    A method that listens for the length of a block begins to hear a trip to the broker after the block began, and stops
    as late after its end. Everything that the link sends within the block, it sends when it hears already: so after a
    `check` within the block nothing is missed.
    """

    async def check(self) -> None:
        """Return where the broker and its job storage answer now. Raises Unavailable where they don't."""
        ...

    async def check_stream(self) -> None:
        """Return unless the job stream is another cluster's, as it was found to be before.

        Raises OtherCluster, or Unavailable where that can't be told now. Such a
        stream is never changed, and no job of it is taken. The link goes on by itself once it is gone.
        """
        ...

    def on_reconnect(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `listener` called after each reconnection, for the length of the block. It must return at once."""
        ...


# -- the worker's end --------------------------------------------------------------------------------------------------


class Delivery(Protocol):
    """A job in a worker's hands, until it is finished or given back, or nothing was said of it for `ack_wait`.

    Its methods return once their message is on its way, or kept until the link is connected again; they raise
    Unavailable where too much waits to be sent. A message may be lost: then the job is delivered again.
    """

    @property
    def job(self) -> Job:
        """The job."""
        ...

    async def finish(self, *, lease: str) -> None:
        """Remove the job from the stream.

        Once it is out of the stream, the watcher of its shard gets a receipt that names `lease`. An empty lease asks
        for no receipt.
        """
        ...

    async def give_back(self, *, after_seconds: float = 0.0) -> None:
        """Have the job delivered again after so many seconds, to any worker."""
        ...

    async def keep_alive(self) -> None:
        """Keep the job for another `ack_wait` from now."""
        ...


class JobSource(Protocol):
    """Delivers jobs to one worker. What it delivers and what it still asks for never exceeds the worker's free room."""

    async def run(self) -> None:
        """Deliver jobs until cancelled, one call of `on_job` after another.

        It goes on after reconnections, and when the stream was lost and made again. A job that was on its way when it
        was cancelled may still be delivered.
        """
        ...

    def wake(self) -> None:
        """Look at the room again: there may be more than before."""
        ...


Room: TypeAlias = Callable[[], int]
"""How many more jobs a worker could take now."""
JobHandler: TypeAlias = Callable[[Delivery], Awaitable[None]]
"""Takes a job into a worker's hands. The next job waits until it returns."""


OnLease: TypeAlias = Callable[[LeaseTerms], object]
"""Takes note of a lease that was granted. It must return at once."""


def unheeded(_: LeaseTerms) -> None:
    """Take no note of a lease."""


class WorkerLink(Link, Protocol):
    """A worker's end. It serves the jobs of all shards; a job says which shard's watcher leases it.

    A request raises NobodyThere, at once, where that watcher isn't there, and Unavailable where it doesn't answer in
    time or the link is disconnected. The watcher may have heard a request that failed.
    """

    def jobs(self, *, room: Room, on_job: JobHandler) -> JobSource:
        """A source of jobs for this worker; it delivers once it runs."""
        ...

    async def claim(self, shard: str, request: ClaimRequest, *, on_lease: OnLease = unheeded) -> ClaimReply:
        """Ask for the lease of a job in hand. The watcher made its reply after this call began.

        Where a lease is granted, `on_lease` is called with its terms: before the observation has arrived, which may
        take longer than the lease lasts without a renewal.

        Raises NobodyThere or Unavailable, and OtherCluster where the watcher serves another cluster than this worker.
        The lease may have been granted nevertheless; then it expires by itself.
        """
        ...

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """Subscribe a parent to related objects, and learn what they are.

        Raises NobodyThere or Unavailable; the latter also where `request` names a lease that doesn't hold the parent.
        """
        ...

    async def renew(self, shard: str, renewal: Renewal) -> Lost:
        """The leases of `renewal` that are lost; the watcher renewed all others after this call was made.

        Raises NobodyThere or Unavailable.
        """
        ...

    async def report(self, shard: str, report: SyncReport) -> None:
        """Tell the watcher how a sync ended.

        It may be of any size. It may be on its way only a moment after this returns, and it may be lost. While the link
        is disconnected, it is kept; raises Unavailable where too much waits to be sent.
        """
        ...

    def answering_held(self, held_in: Callable[[str], Renewal]) -> AbstractAsyncContextManager[None]:
        """Answer watchers that ask which leases this worker holds by `held_in(shard)`, for the length of the block."""
        ...


# -- the watcher's end -------------------------------------------------------------------------------------------------


class WatcherHandler(Protocol):
    """What a watcher does with what reaches its link. Each method returns at once; no two of them run at the same time.

    What a method raises is logged, and the next message is handled. A worker whose request ended so gets no answer, and
    runs into its time-out.
    """

    def answer_claim(self, request: ClaimRequest) -> CachedClaimReply:
        """The reply to a worker's claim. It may be of any size."""
        ...

    def answer_related(self, request: RelatedRequest) -> CachedRelated:
        """The related objects that a parent subscribes to. They may be of any size."""
        ...

    def take_renewal(self, renewal: Renewal) -> Lost:
        """The leases of a worker's renewal that are lost."""
        ...

    def take_report(self, report: SyncReport) -> None:
        """A sync ended."""
        ...

    def take_receipt(self, lease: str) -> None:
        """The job that was finished under `lease` is out of the stream."""
        ...

    def take_outcome(self, key: JobKey, outcome: OfferOutcome) -> None:
        """What became of an offer of a key."""
        ...


class WatcherLink(Link, Protocol):
    """The end of the watcher of one shard, and of those that stand by for it."""

    def serving(self, handler: WatcherHandler, *, leads: Leads) -> AbstractAsyncContextManager[None]:
        """Have `handler` called with what workers and the server say, for the length of the block; one block at a time.

        A worker that answers `held_leases` within the block is heard from then on. A reply that is larger than a
        message is handed out in parts, each only while the watcher `leads`. Raises Unavailable where the link can't
        listen.
        """
        ...

    async def offer(self, job: Job) -> None:
        """Publish a job, within `serving`.

        Its outcome is told to the handler: before this returns where the link is disconnected; else later, or never.
        """
        ...

    async def held_leases(self, *, wait_seconds: float) -> list[Renewal]:
        """What workers hold in this shard, from all that answer within `wait_seconds`.

        It takes as long. Raises Unavailable where nobody can be asked.
        """
        ...

    async def ensure_stream(self) -> None:
        """Return once the job stream is there, however long that takes. Jobs that are in it stay."""
        ...

    async def clear_stream(self) -> None:
        """Remove all jobs of the shard from the stream, also those in workers' hands.

        Raises Unavailable where that isn't possible now.
        """
        ...

    async def is_owned(self, controller: ControllerId) -> bool:
        """Whether a watcher, of any shard, owns a controller.

        Raises Unavailable where one listens that doesn't answer in time, or the link is disconnected.
        """
        ...

    def owning(self, controller: ControllerId, *, leads: Leads) -> AbstractAsyncContextManager[None]:
        """Own a controller for the length of the block.

        Watchers that ask are told so while this one `leads`. While it doesn't, they get no answer.
        """
        ...

    async def announce_presence(self, presence: Presence) -> None:
        """Tell the shard's other watchers of this one; the message may be lost.

        Raises Unavailable where too much waits to be sent.
        """
        ...

    def on_presence(self, listener: Callable[[Presence], None]) -> AbstractAsyncContextManager[None]:
        """Have `listener` called with each presence in the shard, for the length of the block.

        The watcher's own are among them.
        """
        ...

    async def announce_resignation(self) -> None:
        """Tell the shard's other watchers that its leader resigned; the message may be lost.

        Raises Unavailable where too much waits to be sent.
        """
        ...

    def on_resignation(self, listener: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Have `listener` called at each resignation of a leader of the shard, for the length of the block."""
        ...
