"""A parent counts once in the health of its controller, however many parts of its work there are."""

from dataclasses import replace

from metaloop.common.faults import Fault
from metaloop.common.testing.builders import job_key, sync_report
from metaloop.watcher.core.health import ControllerStats, summary_of

PARENT = job_key("p")
PARTS = [PARENT._replace(part=part) for part in "abc"]


def stats() -> ControllerStats:
    """A parent with three parts, all of which exist when the controller starts."""
    found = ControllerStats()
    for key in (PARENT, *PARTS):
        found.add(key, ControllerStats())
    return found


def failed(found: ControllerStats, *parts: str) -> None:
    for part in parts:
        report = sync_report(PARENT._replace(part=part), "lease", result="retry")
        found.record(replace(report, fault=Fault.TIMED_OUT, message="it said no"))


def test_a_parent_whose_parts_fail_counts_once():
    found = stats()

    failed(found, "a", "b")

    summary = summary_of(1, problem=None, stats=found)
    assert (summary.parents, summary.failing, summary.reason) == (1, 1, "HookFailing")


def test_a_parent_fails_until_all_of_its_parts_are_synced():
    found = stats()
    failed(found, "a", "b")

    found.record(sync_report(PARTS[0], "lease"))
    found.record(sync_report(PARENT, "lease"))
    failing = found.failing_parents
    found.record(sync_report(PARTS[1], "lease"))

    assert (failing, found.failing_parents) == (1, 0)


def test_a_controller_is_starting_while_a_part_has_not_been_synced():
    found = stats()
    for key in (PARENT, *PARTS[1:]):
        found.record(sync_report(key, "lease"))

    summary = summary_of(1, problem=None, stats=found)

    assert (summary.reason, summary.message) == ("Starting", "1 of 1 parents have not been synced since it started")


def test_the_parts_of_a_parent_that_is_gone_are_forgotten_with_it():
    found = stats()
    failed(found, "a", "b")

    found.forget(PARENT)

    assert (found.failing, found.unsynced) == ({}, set())
