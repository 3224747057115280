from dataclasses import replace

from metaloop.common.bus.channels import WatcherEars, answering_held, hearing_workers, held_leases, renew, report
from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import HeldLease, Renewal, done_subject
from metaloop.common.report import SyncReport
from metaloop.common.testing.builders import SHARD, job_key, sync_report, write
from metaloop.common.testing.polling import eventually

RENEWAL = Renewal(worker="worker", slots=5, leases=[HeldLease(job_key("a"), "e-1"), HeldLease(job_key("b"), "e-2")])


class Watcher:
    """What a watcher heard."""

    def __init__(self) -> None:
        self.renewals: list[Renewal] = []
        self.reports: list[SyncReport] = []
        self.receipts: list[str] = []
        self.ears = WatcherEars(on_renewal=self.renewal, on_report=self.reports.append, on_receipt=self.receipts.append)

    def renewal(self, renewal: Renewal) -> list[str]:
        self.renewals.append(renewal)
        return ["e-2"]


async def test_a_renewal_tells_which_leases_are_lost(bus: Bus):
    watcher = Watcher()
    async with hearing_workers(bus, SHARD, watcher.ears):
        assert await renew(bus, SHARD, RENEWAL) == ["e-2"]

    assert watcher.renewals == [RENEWAL]


async def test_reports_and_receipts_are_heard(bus: Bus):
    watcher = Watcher()
    finished = replace(sync_report(job_key(), "e-1", writes=[write()]), resync_after_seconds=3.5)
    async with hearing_workers(bus, SHARD, watcher.ears):
        await report(bus, SHARD, finished)
        await bus.publish(done_subject(SHARD, "e-1"), b"")

        await eventually(lambda: bool(watcher.reports and watcher.receipts))

    assert (watcher.reports, watcher.receipts) == ([finished], ["e-1"])


async def test_a_watcher_that_starts_learns_what_workers_hold_in_its_shard(bus: Bus):
    asked: list[str] = []

    def answer(shard: str) -> Renewal:
        asked.append(shard)
        return RENEWAL

    async with answering_held(bus, answer):
        assert await held_leases(bus, SHARD, wait_seconds=0.2) == [RENEWAL]

    assert asked == [SHARD]


async def test_a_watcher_that_starts_without_workers_learns_nothing(bus: Bus):
    assert await held_leases(bus, SHARD, wait_seconds=0.1) == []
