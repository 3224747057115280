"""A watcher and a worker that do what a test says, and remember what they heard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from metaloop.common.bus.links import Delivery, WatcherLink, WorkerLink
from metaloop.common.bus.messages import ClaimRequest, OfferOutcome, RelatedRequest, Renewal
from metaloop.common.errors import Unavailable
from metaloop.common.job import Job, JobKey
from metaloop.common.observation import Busy, CachedClaimReply, CachedRelated
from metaloop.common.report import SyncReport
from metaloop.common.testing.builders import job
from metaloop.common.testing.polling import eventually


class Watcher:
    """A watcher: it answers as it is told to, and remembers what it heard."""

    def __init__(self, link: WatcherLink) -> None:
        self.link = link
        self.claim_reply: Callable[[ClaimRequest], CachedClaimReply] = lambda _: Busy(retry_seconds=0.5)
        self.related_reply: Callable[[RelatedRequest], CachedRelated] = lambda request: CachedRelated(fingerprint=request.fingerprint)
        self.lost: list[str] = []
        """The leases that it answers to be lost."""
        self.leads = True
        self.renewals: list[Renewal] = []
        self.reports: list[SyncReport] = []
        self.receipts: list[str] = []
        self.outcomes: list[tuple[JobKey, OfferOutcome]] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["Watcher"]:
        async with self.link.serving(self, leads=lambda: self.leads):
            await self.link.check()  # it hears everything from now on
            yield self
        with suppress(Unavailable):
            await self.link.check()  # it hears nothing any more

    async def offer(self, *jobs: Job) -> list[OfferOutcome]:
        """What became of each job, in their order."""
        told = len(self.outcomes)
        for each in jobs:
            await self.link.offer(each)
        await eventually(lambda: len(self.outcomes) == told + len(jobs))
        by_key = self.outcomes[told:]
        assert [key for key, _ in by_key] == [each.key for each in jobs]
        return [outcome for _, outcome in by_key]

    async def queue(self, *names: str) -> None:
        """Have the jobs of these parents queued."""
        assert set(await self.offer(*map(job, names))) == {OfferOutcome.QUEUED}

    def answer_claim(self, request: ClaimRequest) -> CachedClaimReply:
        return self.claim_reply(request)

    def answer_related(self, request: RelatedRequest) -> CachedRelated:
        return self.related_reply(request)

    def take_renewal(self, renewal: Renewal) -> list[str]:
        self.renewals.append(renewal)
        return self.lost

    def take_report(self, report: SyncReport) -> None:
        self.reports.append(report)

    def take_receipt(self, lease: str) -> None:
        self.receipts.append(lease)

    def take_outcome(self, key: JobKey, outcome: OfferOutcome) -> None:
        self.outcomes.append((key, outcome))


class Worker:
    """A worker: it holds what is delivered to it, until told otherwise."""

    def __init__(self, link: WorkerLink, *, slots: int) -> None:
        self.slots = slots
        self.hands: list[Delivery] = []
        self.source = link.jobs(room=lambda: self.slots - len(self.hands), on_job=self._take)

    @property
    def names(self) -> list[str]:
        """The parents whose jobs it has in hand, sorted."""
        return sorted(delivery.job.key.name for delivery in self.hands)

    async def next(self) -> Delivery:
        """The next job, out of its hands."""
        await eventually(lambda: bool(self.hands))
        delivery = self.hands.pop(0)
        self.source.wake()
        return delivery

    async def _take(self, delivery: Delivery) -> None:
        self.hands.append(delivery)


@asynccontextmanager
async def pulling(link: WorkerLink, *, slots: int = 4) -> AsyncIterator[Worker]:
    """A worker that takes jobs for the length of the block."""
    worker = Worker(link, slots=slots)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.source.run())
        yield worker
        running.cancel()
