"""Conformance: workers ask, renew and report, and the watcher of the shard answers."""

from dataclasses import replace

import pytest

from metaloop.common.bus.links import WorkerLink
from metaloop.common.bus.messages import ClaimRequest, HeldLease, RelatedRequest, Renewal
from metaloop.common.errors import NobodyThere, Unavailable
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import Selector
from metaloop.common.observation import (
    Busy,
    CachedClaimReply,
    CachedGrant,
    CachedGroup,
    CachedObservation,
    CachedRelated,
    Gone,
    Granted,
    LeaseTerms,
)
from metaloop.common.related_query import ANYWHERE, RelatedQuery
from metaloop.common.testing.builders import PARENTS, SHARD, cached_observation, job_key, sync_report, write
from metaloop.common.testing.polling import eventually

from .hands import Watcher
from .subject import BusUnderTest

CLAIM = ClaimRequest(key=job_key(), worker="worker", free_slots=3)
RELATED = RelatedRequest(key=job_key(), lease="lease", fingerprint="f", queries=[])
RENEWAL = Renewal(worker="worker", free_slots=5, leases=[HeldLease(job_key("a"), "e-1"), HeldLease(job_key("b"), "e-2")])


def grant(observation: CachedObservation) -> CachedGrant:
    return CachedGrant(lease="lease", lease_seconds=5.0, observation=observation)


def padded(size: int) -> CachedObservation:
    """An observation of more than so many bytes."""
    return cached_observation(b'{"padding":"' + b"x" * size + b'"}')


async def test_a_claim_brings_lease_and_observation(watcher: Watcher, worker: WorkerLink):
    asked: list[ClaimRequest] = []

    def answer(request: ClaimRequest) -> CachedClaimReply:
        asked.append(request)
        return grant(cached_observation())

    watcher.claim_reply = answer
    reply = await worker.claim(SHARD, CLAIM)

    assert asked == [CLAIM]
    assert isinstance(reply, Granted)
    assert (reply.lease, reply.lease_seconds, reply.shard) == ("lease", 5.0, SHARD)
    assert reply.observation.parent == {"metadata": {"name": "parent"}}


@pytest.mark.parametrize("refusal", [Busy(retry_seconds=0.5), Gone(reason="deleted", lease="e-1")])
async def test_a_refusal_comes_as_it_was_given(watcher: Watcher, worker: WorkerLink, refusal: Busy | Gone):
    watcher.claim_reply = lambda _: refusal

    assert await worker.claim(SHARD, CLAIM) == refusal


async def test_an_observation_larger_than_a_message_comes_whole(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    watcher.claim_reply = lambda _: grant(padded(bus.large_bytes))

    reply = await worker.claim(SHARD, CLAIM)

    assert isinstance(reply, Granted)
    assert reply.observation.parent == {"padding": "x" * bus.large_bytes}


@pytest.mark.parametrize("is_large", [False, True])
async def test_a_lease_is_told_before_its_observation(*, bus: BusUnderTest, watcher: Watcher, worker: WorkerLink, is_large: bool):
    watcher.claim_reply = lambda _: grant(padded(bus.large_bytes if is_large else 0))
    told: list[LeaseTerms] = []

    await worker.claim(SHARD, CLAIM, on_lease=told.append)

    assert told == [LeaseTerms(lease="lease", seconds=5.0)]


@pytest.mark.parametrize("refusal", [Busy(retry_seconds=0.5), Gone(reason="deleted", lease="e-1")])
async def test_no_lease_is_told_of_a_refusal(watcher: Watcher, worker: WorkerLink, refusal: Busy | Gone):
    watcher.claim_reply = lambda _: refusal
    told: list[LeaseTerms] = []

    await worker.claim(SHARD, CLAIM, on_lease=told.append)

    assert told == []


async def test_a_watcher_that_leads_no_more_hands_out_no_grant_to_its_end(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    def answer(_: ClaimRequest) -> CachedClaimReply:
        watcher.leads = False
        return grant(padded(bus.large_bytes))

    watcher.claim_reply = answer

    with pytest.raises(Unavailable):
        await worker.claim(SHARD, CLAIM)


async def test_related_objects_come_as_they_were_found(watcher: Watcher, worker: WorkerLink):
    asked: list[RelatedRequest] = []
    group = CachedGroup(resource=PARENTS, objects=[b'{"metadata":{"name":"one"}}'])

    def answer(request: RelatedRequest) -> CachedRelated:
        asked.append(request)
        return CachedRelated(fingerprint="f", groups=[group], waiting=[PARENTS], unknown=[ResourceId("v9", "unknowns")])

    watcher.related_reply = answer
    found = await worker.related(SHARD, RELATED)

    assert asked == [RELATED]
    assert found.fingerprint == "f"
    assert [(each.info, each.objects) for each in found.groups] == [(PARENTS, [{"metadata": {"name": "one"}}])]
    assert (found.waiting, found.unknown) == ([PARENTS], [ResourceId("v9", "unknowns")])


async def test_related_objects_larger_than_a_message_come_whole(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    group = CachedGroup(resource=PARENTS, objects=[padded(bus.large_bytes).parent])
    watcher.related_reply = lambda _: CachedRelated(fingerprint="f", groups=[group])

    found = await worker.related(SHARD, RELATED)

    assert found.groups[0].objects == [{"padding": "x" * bus.large_bytes}]


async def test_a_request_larger_than_a_message_comes_whole(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    names = frozenset(f"{number:060}" for number in range(bus.large_bytes // 60))
    query = RelatedQuery(resource=PARENTS.id, where=ANYWHERE, labels=Selector(), names=names)
    asked: list[RelatedRequest] = []

    def answer(request: RelatedRequest) -> CachedRelated:
        asked.append(request)
        return CachedRelated(fingerprint="f")

    watcher.related_reply = answer
    await worker.related(SHARD, replace(RELATED, queries=[query]))

    assert [request.queries for request in asked] == [[query]]


async def test_a_report_larger_than_a_message_comes_whole_and_in_order(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    writes = [write(f"{number:060}") for number in range(bus.large_bytes // 60)]
    large = replace(sync_report(job_key(), "lease"), writes=writes, resync_after_seconds=5.0)

    await worker.report(SHARD, large)
    await worker.report(SHARD, sync_report(job_key(), "later"))

    await eventually(lambda: len(watcher.reports) == 2)
    assert (watcher.reports[0].lease, watcher.reports[0].resync_after_seconds) == ("lease", 5.0)
    assert watcher.reports[0].writes == writes
    assert watcher.reports[1].lease == "later"


async def test_a_request_whose_handler_fails_gets_no_answer_and_the_next_one_does(watcher: Watcher, worker: WorkerLink):
    def fail(_: ClaimRequest) -> CachedClaimReply:
        raise ValueError("poison")

    watcher.claim_reply = fail
    with pytest.raises(Unavailable) as failure:
        await worker.claim(SHARD, CLAIM)
    watcher.claim_reply = lambda _: Busy(retry_seconds=1.0)

    assert not isinstance(failure.value, NobodyThere)
    assert await worker.claim(SHARD, CLAIM) == Busy(retry_seconds=1.0)


async def test_a_renewal_tells_which_leases_are_lost(watcher: Watcher, worker: WorkerLink):
    watcher.lost = ["e-2"]

    assert await worker.renew(SHARD, RENEWAL) == ["e-2"]
    assert watcher.renewals == [RENEWAL]


async def test_where_no_watcher_is_there_requests_fail_at_once(worker: WorkerLink):
    with pytest.raises(NobodyThere):
        await worker.claim(SHARD, CLAIM)
    with pytest.raises(NobodyThere):
        await worker.related(SHARD, RELATED)
    with pytest.raises(NobodyThere):
        await worker.renew(SHARD, RENEWAL)


async def test_a_watcher_answers_for_its_own_shard_only(watcher: Watcher, worker: WorkerLink):
    with pytest.raises(NobodyThere):
        await worker.claim("other", CLAIM)


async def test_after_the_handler_was_served_nobody_is_there(bus: BusUnderTest, worker: WorkerLink):
    async with Watcher(bus.watcher).serving():
        await worker.claim(SHARD, CLAIM)

    with pytest.raises(NobodyThere):
        await worker.claim(SHARD, CLAIM)


async def test_a_report_arrives_as_it_was_sent(watcher: Watcher, worker: WorkerLink):
    report = replace(sync_report(job_key(), "e-1", writes=[write()]), resync_after_seconds=3.5)

    await worker.report(SHARD, report)

    await eventually(lambda: watcher.reports == [report])


async def test_while_the_broker_is_down_requests_fail(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    await bus.stop()

    with pytest.raises(Unavailable):
        await worker.claim(SHARD, CLAIM)
    with pytest.raises(Unavailable):
        await worker.check()
    with pytest.raises(Unavailable):
        await watcher.link.check()


async def test_after_a_crash_requests_are_answered_and_both_ends_know_of_it(bus: BusUnderTest, watcher: Watcher, worker: WorkerLink):
    told: list[str] = []
    with worker.on_reconnect(lambda: told.append("worker")), watcher.link.on_reconnect(lambda: told.append("watcher")):
        await bus.stop()
        await bus.restart()
        await eventually(lambda: sorted(told) == ["watcher", "worker"])

    await worker.check()
    assert await worker.claim(SHARD, CLAIM) == Busy(retry_seconds=0.5)


async def test_a_listener_hears_of_reconnections_for_the_length_of_its_block(bus: BusUnderTest, worker: WorkerLink):
    """A watcher may come to lead and lose it again for months, and listens anew each time."""
    told: list[str] = []

    with worker.on_reconnect(lambda: told.append("outer")):
        with worker.on_reconnect(lambda: told.append("inner")):
            pass
        await bus.stop()
        await bus.restart()
        await eventually(lambda: bool(told))

    assert told == ["outer"]
