"""Our own writes come back as events. A parent's wait behind what others changed; those of outputs are no news."""

from dataclasses import replace

import pytest

from metaloop.common.report import Write
from metaloop.common.testing.builders import CHILDREN, PARENTS, job_key
from metaloop.watcher.core.entry import Mark
from metaloop.watcher.core.fair_queue import MarkClass

from .queues import KEY, QueueInHand

CHANGED, ECHO = MarkClass.CHANGED, MarkClass.ECHO


@pytest.fixture
def hand() -> QueueInHand:
    return QueueInHand()


def status(version: int) -> Write:
    """A write to the parent itself, which left it at a resourceVersion."""
    return Write(resource=PARENTS.id, namespace=KEY.namespace, name=KEY.name, uid="uid", resource_version=str(version))


def parent_came_to(hand: QueueInHand, version: int) -> None:
    """The event of a parent that has this resourceVersion now."""
    hand.queue.mark(KEY, Mark(klass=CHANGED, reason="the parent changed", versions=frozenset([version])), now=hand.clock())
    hand.see(status(version))


def klass(hand: QueueInHand) -> MarkClass:
    mark = hand.entry().mark
    assert mark is not None
    return mark.klass


def test_the_event_of_our_own_status_is_an_echo(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(status(7),))
    parent_came_to(hand, 7)

    assert klass(hand) is ECHO
    assert hand.take_all() == [KEY]


def test_an_echo_that_is_faster_than_its_report_is_one_too(hand: QueueInHand):
    lease = hand.leased()
    parent_came_to(hand, 7)
    assert klass(hand) is CHANGED
    hand.finish(lease, writes=(status(7),))

    assert klass(hand) is ECHO


def test_all_writes_of_a_sync_to_its_parent_echo(hand: QueueInHand):
    lease = hand.leased()
    parent_came_to(hand, 6)
    hand.finish(lease, writes=(status(6), status(7)))
    parent_came_to(hand, 7)

    assert klass(hand) is ECHO


def test_a_change_by_somebody_else_is_none(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(status(7),))
    parent_came_to(hand, 7)
    parent_came_to(hand, 8)

    assert klass(hand) is CHANGED


@pytest.mark.parametrize("versions", [(6, 7), (7, 8)])
def test_a_foreign_change_is_not_hidden_by_an_echo_faster_than_its_report(hand: QueueInHand, versions: tuple[int, ...]):
    lease = hand.leased()
    for version in versions:
        parent_came_to(hand, version)
    hand.finish(lease, writes=(status(7),))

    assert klass(hand) is CHANGED


@pytest.mark.parametrize("child_is_first", [True, False])
def test_a_changed_child_is_not_hidden_by_an_echo(hand: QueueInHand, child_is_first: bool):
    lease = hand.leased()
    if child_is_first:
        hand.mark()
    parent_came_to(hand, 7)
    if not child_is_first:
        hand.mark()
    hand.finish(lease, writes=(status(7),))

    assert klass(hand) is CHANGED


def test_a_write_of_the_sync_before_the_last_echoes_no_more(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(status(7),))
    hand.see(status(7))
    hand.finish(hand.leased())
    parent_came_to(hand, 7)

    assert klass(hand) is CHANGED


def test_what_others_changed_goes_before_an_echo(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(status(7),))
    parent_came_to(hand, 7)
    others = [job_key(name=f"other{number}") for number in range(40)]
    for other in others:
        hand.mark(other)

    assert KEY not in hand.take_all()


def test_an_echo_that_waited_for_long_gets_its_turn_among_changes(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(status(7),))
    parent_came_to(hand, 7)
    hand.wait(3.0)
    for number in range(40):
        hand.mark(job_key(name=f"other{number}"))

    assert KEY in hand.take_all()[:4]


# -- parts: their outputs ----------------------------------------------------------------------------------------------

PART = KEY._replace(part="uid-of-input")


def output(version: int) -> Write:
    """A create or update of an output of the part, which left it at a resourceVersion."""
    return Write(resource=CHILDREN, namespace=KEY.namespace, name="output", uid="uid-of-output", resource_version=str(version))


def output_came_to(hand: QueueInHand, version: int) -> None:
    """The event of an output that has this resourceVersion now."""
    hand.queue.mark(PART, Mark(klass=CHANGED, reason="the output changed", versions=frozenset([version])), now=hand.clock())
    hand.see(output(version))


@pytest.mark.parametrize("is_event_first", [True, False])
def test_a_part_does_not_run_again_for_an_output_that_it_wrote(hand: QueueInHand, *, is_event_first: bool):
    lease = hand.leased(PART)
    if is_event_first:
        output_came_to(hand, 7)
    hand.finish(lease, PART, writes=(output(7),))
    if not is_event_first:
        output_came_to(hand, 7)

    assert hand.take_all() == []
    assert hand.queue.entry(PART) is None


@pytest.mark.parametrize("versions", [(6, 7), (7, 8)])
@pytest.mark.parametrize("is_event_first", [True, False])
def test_a_part_runs_for_an_output_that_somebody_else_changed(hand: QueueInHand, versions: tuple[int, ...], *, is_event_first: bool):
    lease = hand.leased(PART)
    if is_event_first:
        for version in versions:
            output_came_to(hand, version)
    hand.finish(lease, PART, writes=(output(7),))
    if not is_event_first:
        for version in versions:
            output_came_to(hand, version)

    assert hand.take_all() == [PART]


def test_a_part_runs_for_its_input_beside_an_echo(hand: QueueInHand):
    lease = hand.leased(PART)
    hand.mark(PART)
    output_came_to(hand, 7)
    hand.finish(lease, PART, writes=(output(7),))

    assert hand.take_all() == [PART]


def test_a_part_that_failed_is_tried_again_after_its_echoes(hand: QueueInHand):
    lease = hand.leased(PART)
    output_came_to(hand, 7)
    hand.finish(lease, PART, result="retry", writes=(output(7),))
    hand.wait(1.0)

    assert hand.take_all() == [PART]


def test_a_part_runs_after_an_output_that_it_deleted_is_gone(hand: QueueInHand):
    """A recreated output is created by the sync after its deletion."""
    gone = replace(output(7), resource_version="")
    hand.finish(hand.leased(PART), PART, writes=(gone,))
    hand.mark(PART)
    hand.see(gone)

    assert hand.take_all() == [PART]


@pytest.mark.parametrize("is_event_first", [True, False])
def test_a_part_that_was_forgotten_meanwhile_runs_for_what_it_still_wrote(hand: QueueInHand, *, is_event_first: bool):
    """Its input went while its first output was on its way: nobody else would ever look at that output."""
    lease = hand.leased(PART)
    hand.queue.forget(PART)
    if is_event_first:
        output_came_to(hand, 7)
    hand.finish(lease, PART, writes=(output(7),))
    if not is_event_first:
        output_came_to(hand, 7)

    assert hand.take_all() == [PART]


@pytest.mark.parametrize("klass", [MarkClass.RETRY, MarkClass.RESYNC])
@pytest.mark.parametrize("is_event_first", [True, False])
def test_a_mark_of_a_lower_class_is_not_hidden_by_an_echo(hand: QueueInHand, klass: MarkClass, *, is_event_first: bool):
    """A controller that was edited meanwhile marks its parts in such a class."""
    lease = hand.leased(PART)
    if is_event_first:
        output_came_to(hand, 7)
    hand.mark(PART, klass)
    if not is_event_first:
        output_came_to(hand, 7)
    hand.finish(lease, PART, writes=(output(7),))

    assert hand.take_all() == [PART]
