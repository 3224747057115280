"""The record of what a sync did, for its report."""

import pytest
from builders import CONFIG_MAPS, config_map, stored

from metaloop.common.errors import Conflict
from metaloop.reconciler.core.effects import Done, Effects, write_of
from metaloop.reconciler.core.model import CreateChild, DeleteChild
from metaloop.reconciler.errors import Failure
from metaloop.reconciler.journal import Journal

A, B = stored(config_map("a")), stored(config_map("b"))
CREATED = Done(action=CreateChild(info=CONFIG_MAPS, obj=A, reason=""), written=A)
DELETED = Done(action=DeleteChild(info=CONFIG_MAPS, obj=B, reason=""), written=B)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [([], None), ([5.0], 5.0), ([5.0, 2.0], 2.0), ([2.0, 5.0], 2.0), ([0.1, 0.1], 0.1)],
)
def test_soonest_resync_counts(wanted: list[float], expected: float | None):
    journal = Journal()

    for seconds in wanted:
        journal.resync_within(seconds)

    assert journal.resync_after_seconds == expected


def test_first_hook_call_of_a_sync_is_the_one_that_is_timed():
    journal = Journal()

    journal.begin_hook(after_seconds=0.5)
    journal.begin_hook(after_seconds=2.0)

    assert journal.hook_after_seconds == 0.5


def test_actions_are_counted_by_kind_and_writes_kept_in_order():
    journal = Journal()

    journal.record(Effects(done=(CREATED, DELETED)))
    journal.record_write("Status", write_of(CONFIG_MAPS, A, is_deletion=False))
    journal.record(Effects(done=(CREATED,)))

    assert journal.actions == {"CreateChild": 2, "DeleteChild": 1, "Status": 1}
    assert [write.name for write in journal.writes] == ["a", "b", "a", "a"]


def test_write_that_may_have_worked_is_reported_though_no_action_is_counted():
    journal = Journal()
    uncertain = write_of(CONFIG_MAPS, A, is_deletion=False)

    journal.record(Effects(failures=(Failure(what="create a", error=Conflict("?"), uncertain=uncertain),)))

    assert (journal.writes, journal.actions) == ([uncertain], {})


def test_nothing_done_is_nothing_noted():
    journal = Journal()

    journal.record(Effects())

    assert (journal.writes, journal.actions, journal.unknown_keys) == ([], {}, ())


def test_calls_of_one_hook_are_summed_up():
    journal = Journal()

    journal.end_hook("sync", seconds=0.5)
    journal.end_hook("sync", seconds=0.25)
    journal.end_hook("customize", seconds=0.1)

    assert journal.hook_seconds == {"sync": 0.75, "customize": 0.1}
