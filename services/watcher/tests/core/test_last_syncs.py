"""What is remembered of the last sync of each key."""

from metaloop.common.testing.builders import job_key, sync_report
from metaloop.watcher.core.entry import Mark
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.last_syncs import LastSync, LastSyncs

A, B, C = job_key("a"), job_key("b"), job_key("c")


def ended(at: float) -> LastSync:
    """A sync that ended then."""
    mark = Mark(klass=MarkClass.CHANGED, reason="it changed")
    return LastSync(served=mark, began=at - 1, ended=at, report=sync_report(A, "lease"))


def test_sync_replaces_the_one_before():
    last = LastSyncs(limit=2)

    last.add(A, ended(1.0))
    last.add(A, ended(2.0))

    assert [sync.ended for _, sync in last.of(A)] == [2.0]


def test_keys_that_were_synced_longest_ago_are_forgotten_first():
    last = LastSyncs(limit=2)
    for at, key in enumerate((A, B, A, C)):
        last.add(key, ended(float(at)))

    assert [bool([*last.of(key)]) for key in (A, B, C)] == [True, False, True]


def test_parts_are_found_by_their_parent():
    last, part = LastSyncs(limit=5), A._replace(part="uid")
    for key in (A, part, B):
        last.add(key, ended(1.0))

    assert [key for key, _ in last.of(A)] == [A, part]
