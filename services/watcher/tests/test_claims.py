"""What a claim is answered."""

import pytest

from metaloop.common.bus.messages import ClaimRequest
from metaloop.common.observation import CachedClaimReply, CachedGrant
from metaloop.common.testing.builders import SHARD, cached_observation, job_key
from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.claims import Claims
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.workqueue import MarkClass, WorkQueue

KEY = job_key("a")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def queue(clock: FakeClock) -> WorkQueue:
    return WorkQueue(shard=SHARD, cache=Caches(), is_behind=lambda *_: False, limits=Limits(), clock=clock)


def claimed(queue: WorkQueue) -> CachedClaimReply:
    """The reply to a claim of the key."""
    claims = Claims(queue, observe=lambda _: cached_observation(), is_behind=lambda _: False, lease_seconds=5.0)
    return claims.answer(ClaimRequest(key=KEY, worker="worker", free_slots=1))


@pytest.mark.parametrize("klass", [MarkClass.NEW, MarkClass.CHANGED])
def test_grant_says_how_long_ago_the_change_was_seen(queue: WorkQueue, clock: FakeClock, klass: MarkClass):
    queue.mark(KEY, klass, "it changed")
    clock.now += 2.0

    reply = claimed(queue)

    assert isinstance(reply, CachedGrant)
    assert reply.changed_seconds_ago == 2.0


@pytest.mark.parametrize("klass", [MarkClass.ECHO, MarkClass.RETRY, MarkClass.RESYNC])
def test_grant_names_no_change_for_what_our_writes_or_timers_marked(queue: WorkQueue, klass: MarkClass):
    queue.mark(KEY, klass, "resync")

    reply = claimed(queue)

    assert isinstance(reply, CachedGrant)
    assert reply.changed_seconds_ago is None
