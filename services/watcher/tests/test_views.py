"""What the queue's view shows of a key, from its first mark to its rest."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.testing.builders import SHARD, job_key, sync_report
from metaloop.common.testing.clock import FakeClock
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.explain import shown_entry
from metaloop.watcher.workqueue import MarkClass, WorkQueue

KEY = job_key()


class Shown:
    """A queue, and what is shown of its one key."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.queue = WorkQueue(shard=SHARD, cache=Caches(), is_behind=lambda *_: False, limits=Limits(), clock=self.clock)

    def mark(self, reason: str) -> None:
        self.queue.mark(KEY, MarkClass.CHANGED, reason)

    def lease(self) -> str:
        assert self.queue.take() is not None
        lease = self.queue.claim(KEY, worker="worker", slots=1)
        assert isinstance(lease, Lease)
        return lease.id

    def fail(self, lease: str) -> None:
        self.queue.report(sync_report(KEY, lease, result="retry"))
        self.queue.receipt(lease)

    @property
    def view(self) -> JsonObject:
        (entry,) = self.queue.entries()
        return shown_entry(entry, self.clock())


@pytest.fixture
def shown() -> Shown:
    return Shown()


def test_a_key_that_lies_in_the_stream_says_since_when_and_why(shown: Shown):
    shown.mark("a change")
    assert shown.queue.take() is not None
    shown.clock.advance(3)

    view = shown.view

    assert (view["stage"], view["class"], view["reason"], view["ageSeconds"]) == ("queued", "changed", "a change", 3.0)


def test_a_key_in_a_workers_hand_says_what_for_and_why_it_will_run_again(shown: Shown):
    shown.mark("a change")
    shown.lease()
    shown.clock.advance(2)
    shown.mark("another change")

    view = shown.view

    assert (view["stage"], view["reason"], view["ageSeconds"], view["againBecause"]) == ("leased", "a change", 2.0, "another change")


def test_a_key_that_failed_says_when_it_is_tried_again(shown: Shown):
    shown.mark("a change")
    shown.fail(shown.lease())

    view = shown.view

    assert (view["stage"], view["reason"], view["failures"]) == ("idle", None, 1)
    assert view["dueInSeconds"] == {"retry": 0.005}
