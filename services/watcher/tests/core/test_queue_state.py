from dataclasses import replace
from itertools import pairwise

import pytest

from metaloop.common.bus.messages import HeldLease
from metaloop.common.observation import Busy, Gone
from metaloop.common.report import UNKNOWN_VERSION
from metaloop.common.testing.builders import controller_id, job_key, write
from metaloop.watcher.core.entry import Lease, Purpose, Stage
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.window import Window

from .queues import KEY, LIMITS, QueueInHand


@pytest.fixture
def hand() -> QueueInHand:
    return QueueInHand()


# -- stingy ------------------------------------------------------------------------------------------------------------


def test_a_key_marked_many_times_before_it_runs_runs_once(hand: QueueInHand):
    for _ in range(10):
        hand.mark()
    assert hand.take_all() == [KEY]
    hand.mark()
    hand.finish(hand.lease())

    assert hand.take_all() == []
    assert hand.queue.entry(KEY) is None


def test_a_key_marked_many_times_while_it_runs_runs_once_more(hand: QueueInHand):
    lease = hand.leased()
    for _ in range(10):
        hand.mark()
    assert hand.take_all() == []

    hand.finish(lease)

    assert hand.take_all() == [KEY]


def test_a_key_is_not_published_again_before_the_receipt_of_its_job(hand: QueueInHand):
    lease = hand.leased()
    hand.mark()
    hand.report(lease)
    assert hand.take_all() == []

    hand.receipt(lease)

    assert hand.take_all() == [KEY]


def test_a_receipt_that_overtakes_its_report_ends_nothing_alone(hand: QueueInHand):
    lease = hand.leased()
    hand.receipt(lease)
    assert hand.entry().stage is Stage.LEASED

    hand.report(lease)

    assert hand.queue.entry(KEY) is None


def test_a_job_says_why_it_was_queued_in_the_words_of_its_strongest_mark(hand: QueueInHand):
    hand.mark(klass=MarkClass.RESYNC, reason="resync")
    hand.mark(klass=MarkClass.CHANGED, reason="child changed")
    hand.mark(klass=MarkClass.CHANGED, reason="parent changed")

    job = hand.take()

    assert job is not None
    assert job.reason == "child changed"


# -- single ------------------------------------------------------------------------------------------------------------


def test_a_second_worker_is_told_to_come_back(hand: QueueInHand):
    hand.leased(worker="first")

    reply = hand.claim(worker="second")

    assert reply == Busy(retry_seconds=1.0)


def test_a_lease_that_is_renewed_keeps_others_away_for_as_long_as_it_takes(hand: QueueInHand):
    lease = hand.leased(worker="first")
    for _ in range(20):
        hand.wait(LIMITS.lease_seconds / 3)
        assert hand.renew(lease, worker="first")

    assert isinstance(hand.claim(worker="second"), Busy)


def test_a_lease_that_is_not_renewed_ends_and_its_key_is_offered_again(hand: QueueInHand):
    hand.leased(worker="dead")
    hand.wait(LIMITS.lease_seconds + 0.1)

    assert hand.take_all() == [KEY]
    assert isinstance(hand.claim(worker="alive"), Lease)


def test_a_lease_whose_time_is_over_yields_to_a_claim_at_once(hand: QueueInHand):
    hand.leased(worker="dead")
    hand.clock.advance(LIMITS.lease_seconds)

    assert isinstance(hand.claim(worker="alive"), Lease)


def test_a_repeated_claim_by_the_holder_is_granted_after_its_writes_could_be_seen(hand: QueueInHand):
    """Either our reply didn't reach it, or its report didn't reach us."""
    first = hand.leased(worker="worker")

    assert hand.claim(worker="worker") == Busy(retry_seconds=LIMITS.gate_seconds)
    hand.wait(LIMITS.gate_seconds + 0.1)

    second = hand.lease(worker="worker")
    assert second.id != first.id
    assert not hand.renew(first)


def test_the_words_of_a_lost_lease_change_nothing(hand: QueueInHand):
    zombie = hand.leased(worker="zombie")
    hand.clock.advance(LIMITS.lease_seconds)
    current = hand.lease(worker="alive")

    hand.finish(zombie, writes=(write(),))

    assert not hand.renew(zombie, worker="zombie")
    assert hand.entry().lease is current
    assert hand.queue.counts.stale_messages == 2


# -- at least once -----------------------------------------------------------------------------------------------------


def test_an_offer_that_the_server_never_answered_is_made_again(hand: QueueInHand):
    hand.mark()
    hand.take()
    hand.wait(LIMITS.answer_seconds + 0.1)

    assert hand.take_all() == [KEY]


def test_an_offer_with_an_unknown_outcome_is_made_again_soon(hand: QueueInHand):
    hand.mark()
    hand.take()
    hand.queue.unknown(KEY, now=hand.clock())
    hand.wait(0.61)

    assert hand.take_all() == [KEY]


def test_a_refused_offer_is_made_again_less_and_less_often(hand: QueueInHand):
    hand.mark()
    hand.take()
    hand.queue.refused(KEY, now=hand.clock())
    offered_at: list[float] = []
    began = hand.clock()
    while len(offered_at) < 6:
        hand.wait(0.1)
        if hand.take_all():
            offered_at.append(round(hand.clock() - began, 1))
            hand.queue.refused(KEY, now=hand.clock())

    assert [round(later - earlier) for earlier, later in pairwise(offered_at)] == [1, 2, 4, 5, 5]


def test_a_stored_job_that_nobody_claims_is_offered_again(hand: QueueInHand):
    hand.mark()
    hand.take()
    hand.queue.stored(KEY, now=hand.clock())
    hand.wait(LIMITS.claim_seconds - 0.1)
    assert hand.take_all() == []
    hand.wait(0.3)

    assert hand.take_all() == [KEY]


def test_after_a_reconnection_all_unclaimed_jobs_are_offered_again(hand: QueueInHand):
    for name in ("a", "b"):
        hand.mark(job_key(name))
    hand.leased(job_key("leased"))
    for name in ("a", "b"):
        hand.queue.stored(job_key(name), now=hand.clock())

    hand.queue.offer_all_again()

    assert {key.name for key in hand.take_all()} == {"a", "b"}


def test_an_outcome_that_comes_after_the_claim_changes_nothing(hand: QueueInHand):
    hand.mark()
    hand.take()
    lease = hand.lease()

    hand.queue.refused(KEY, now=hand.clock())
    hand.queue.stored(KEY, now=hand.clock())

    assert hand.entry().lease is lease
    assert hand.queue.offers.unclaimed == 0


def test_a_mark_lives_through_the_lease_that_took_it(hand: QueueInHand):
    hand.leased(worker="dead")
    hand.wait(LIMITS.lease_seconds + 0.1)
    hand.take_all()

    hand.finish(hand.lease(worker="alive"))

    assert hand.queue.entry(KEY) is None


def test_a_lost_receipt_holds_a_key_up_for_a_second_only(hand: QueueInHand):
    lease = hand.leased()
    hand.mark()
    hand.report(lease)
    hand.wait(LIMITS.receipt_seconds + 0.1)

    assert hand.take_all() == [KEY]
    assert hand.queue.counts.receipts_missed == 1


def test_a_sync_whose_report_is_lost_is_tried_again(hand: QueueInHand):
    lease = hand.leased()
    hand.receipt(lease)
    hand.wait(LIMITS.receipt_seconds + 0.2)

    assert hand.take_all() == [KEY]


def test_a_job_that_comes_back_after_its_report_has_nothing_to_do(hand: QueueInHand):
    lease = hand.leased(worker="first")
    hand.report(lease)

    assert isinstance(hand.claim(worker="second"), Gone)


def test_a_job_of_a_key_that_nobody_marked_has_nothing_to_do(hand: QueueInHand):
    assert isinstance(hand.claim(), Gone)


def test_a_job_left_over_in_the_stream_may_serve_a_key_that_still_waits(hand: QueueInHand):
    hand.mark()

    hand.finish(hand.lease())

    assert hand.take_all() == []


# -- another life of the watcher ---------------------------------------------------------------------------------------


def test_a_lease_of_an_earlier_life_is_adopted(hand: QueueInHand):
    assert hand.queue.renew(HeldLease(KEY, "earlier-7"), worker="worker", now=hand.clock())

    assert isinstance(hand.claim(worker="other"), Busy)


@pytest.mark.parametrize("seconds", [LIMITS.lease_seconds / 2, LIMITS.lease_seconds * 2])
def test_an_adopted_lease_keeps_the_length_that_was_granted(hand: QueueInHand, seconds: float):
    """Its worker counts on that length, whatever the watcher that leads now is set to."""
    held = HeldLease(KEY, "earlier-7", seconds)
    for _ in range(3):
        assert hand.queue.renew(held, worker="worker", now=hand.clock())
        hand.wait(seconds - 0.1)

    before = hand.claim(worker="other")
    hand.wait(0.2)

    assert isinstance(before, Busy)
    assert isinstance(hand.claim(worker="other"), Lease)


def test_a_key_marked_before_its_old_lease_is_told_runs_once_more_after_it(hand: QueueInHand):
    hand.mark()
    hand.take_all()
    hand.queue.renew(HeldLease(KEY, "earlier-7"), worker="worker", now=hand.clock())
    assert hand.take_all() == []

    lease = hand.entry().lease
    assert lease is not None
    hand.finish(lease)

    assert hand.take_all() == [KEY]


def test_of_two_workers_with_old_leases_the_second_loses_its(hand: QueueInHand):
    hand.queue.renew(HeldLease(KEY, "earlier-7"), worker="first", now=hand.clock())

    assert not hand.queue.renew(HeldLease(KEY, "earlier-3"), worker="second", now=hand.clock())


def test_a_finished_lease_of_this_life_does_not_come_back(hand: QueueInHand):
    lease = hand.leased()
    hand.finish(lease)

    assert not hand.renew(lease)
    assert len(hand.queue.leases) == 0


# -- read your writes --------------------------------------------------------------------------------------------------


def test_the_echoes_of_many_writes_cost_one_more_sync(hand: QueueInHand):
    lease = hand.leased()
    echoes = tuple(write(f"child{number}") for number in range(5))
    hand.mark()  # the first echo is faster than the report
    hand.see(echoes[0])
    hand.finish(lease, writes=echoes)
    for echo in echoes[1:]:
        assert hand.take_all() == []
        hand.mark()
        hand.see(echo)

    assert hand.take_all() == [KEY]
    hand.finish(hand.lease())
    assert hand.take_all() == []


def test_writes_that_the_cache_saw_before_the_report_hold_nothing_up(hand: QueueInHand):
    lease = hand.leased()
    hand.mark()
    hand.see(write())
    hand.finish(lease, writes=(write(),))

    assert hand.take_all() == [KEY]


def test_a_sync_whose_writes_nobody_echoes_is_not_followed_by_another(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(write(),))
    hand.see(write())

    assert hand.take_all() == []
    assert hand.queue.entry(KEY) is None


def test_a_cache_that_never_sees_a_write_holds_a_key_up_for_two_seconds_only(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(write(),))
    hand.mark()
    hand.wait(LIMITS.gate_seconds - 0.01)
    assert hand.take_all() == []
    hand.wait(0.02)

    assert hand.take_all() == [KEY]
    assert hand.queue.counts.gates_timed_out == 1


def test_a_gate_stays_closed_while_nothing_is_heard_of_what_was_written(hand: QueueInHand):
    hand.cache.is_hushed = True
    hand.finish(hand.leased(), writes=(write(),))
    hand.mark()

    hand.wait(3 * LIMITS.gate_seconds)
    assert hand.take() is None
    hand.cache.is_hushed = False
    hand.wait(LIMITS.gate_seconds)

    assert hand.take() is not None


def test_a_gate_stays_closed_for_half_a_minute_only_while_nothing_is_heard(hand: QueueInHand):
    hand.cache.is_hushed = True
    hand.finish(hand.leased(), writes=(write(),))
    hand.mark()

    hand.wait(LIMITS.silence_seconds - 0.1)
    assert hand.take() is None
    hand.wait(LIMITS.gate_seconds + 0.1)

    assert hand.take() is not None


def test_write_whose_answer_was_lost_is_awaited_for_two_seconds_on_a_quiet_kind(hand: QueueInHand):
    """It may not have been executed: then no event ever comes, and a kind that nobody changes is always silent."""
    hand.cache.is_hushed = True
    lost = replace(write(), resource_version=UNKNOWN_VERSION)
    hand.finish(hand.leased(), writes=(lost,))
    hand.mark()

    hand.wait(LIMITS.gate_seconds - 0.01)
    assert hand.take() is None
    hand.wait(0.02)

    assert hand.take() is not None


def test_lost_answer_does_not_shorten_the_wait_for_a_certain_write(hand: QueueInHand):
    hand.cache.is_hushed = True
    lost = replace(write("lost"), resource_version=UNKNOWN_VERSION)
    hand.finish(hand.leased(), writes=(lost, write("certain")))
    hand.mark()

    hand.wait(2 * LIMITS.gate_seconds)

    assert hand.take() is None


def test_a_job_left_over_in_the_stream_does_not_pass_the_gate(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(write(),))
    hand.mark()

    assert isinstance(hand.claim(), Busy)


def expired(hand: QueueInHand) -> Lease:
    """A lease that nobody renewed in time."""
    lease = hand.leased(worker="stalled")
    hand.wait(LIMITS.lease_seconds + 0.1)
    return lease


def test_a_report_that_comes_too_late_still_tells_what_was_written(hand: QueueInHand):
    """The lease is over, and the key is offered again: whoever claims it must not be shown a view before the write."""
    lease = expired(hand)
    hand.report(lease, writes=(write(),))
    before = hand.claim(worker="next")

    hand.see(write())

    assert isinstance(before, Busy)
    assert isinstance(hand.claim(worker="next"), Lease)


def test_a_late_report_of_an_idle_key_holds_up_its_next_sync(hand: QueueInHand):
    lease = hand.leased()
    hand.receipt(lease)
    hand.wait(LIMITS.receipt_seconds + 0.1)  # the report counts as lost, and the sync is over
    hand.report(lease, writes=(write(),))
    hand.mark()
    before = hand.take_all()

    hand.see(write())

    assert (before, hand.take_all()) == ([], [KEY])


def test_a_late_report_takes_its_key_out_of_the_order(hand: QueueInHand):
    late = expired(hand)
    hand.finish(hand.lease(worker="next"))
    hand.mark()

    hand.report(late, writes=(write(),))

    assert hand.take_all() == []
    assert hand.entry().stage is Stage.GATED


def test_a_late_report_during_the_next_sync_holds_up_the_one_after_it(hand: QueueInHand):
    late = expired(hand)
    lease = hand.lease(worker="next")
    hand.report(late, writes=(write("late"),))
    hand.mark()
    hand.finish(lease, writes=(write("own"),))
    hand.see(write("own"))
    before = hand.take_all()

    hand.see(write("late"))

    assert (before, hand.take_all()) == ([], [KEY])


def test_a_late_report_holds_a_key_up_for_two_seconds_only(hand: QueueInHand):
    hand.report(expired(hand), writes=(write(),))

    hand.wait(LIMITS.gate_seconds + 0.1)

    assert isinstance(hand.claim(worker="next"), Lease)


def test_a_late_report_that_wrote_nothing_new_leaves_nothing_behind(hand: QueueInHand):
    lease = hand.leased()
    hand.finish(lease)
    hand.cache.seen.add(write())

    hand.report(lease, writes=(write(),))

    assert hand.queue.entry(KEY) is None


def test_a_late_report_of_a_forgotten_controller_leaves_nothing_behind(hand: QueueInHand):
    lease = hand.leased()
    hand.finish(lease)
    hand.queue.forget_controller(KEY.controller)

    hand.report(lease, writes=(write(),))

    assert hand.queue.entry(KEY) is None


def test_a_regained_term_still_waits_for_writes_of_the_former_one(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(write(),))
    hand.regain_term()
    hand.mark()
    before = hand.take_all()

    hand.see(write())

    assert (before, hand.take_all()) == ([], [KEY])


def test_a_regained_term_forgets_writes_that_were_seen_meanwhile(hand: QueueInHand):
    hand.finish(hand.leased(), writes=(write(),))
    hand.cache.seen.add(write())

    hand.regain_term()

    assert (hand.queue.gated, [*hand.queue.entries()]) == (0, [])


# -- timers ------------------------------------------------------------------------------------------------------------


def test_a_failed_key_is_tried_again_after_its_backoff(hand: QueueInHand):
    hand.finish(hand.leased(), result="retry")
    assert hand.take_all() == []
    hand.wait(0.005)

    assert hand.take_all() == [KEY]


def test_backoff_grows_with_each_failure_and_success_resets_it(hand: QueueInHand):
    waits: list[float] = []
    lease = hand.leased()
    for result in ("retry", "retry", "retry", "done", "retry"):
        hand.finish(lease, result=result)
        due = hand.entry().due(Purpose.RETRY) if hand.queue.entry(KEY) else None
        waits.append(round(due - hand.clock(), 4) if due is not None else 0.0)
        hand.wait(1.0)
        hand.mark()
        hand.take_all()
        lease = hand.lease()

    assert waits == [0.005, 0.01, 0.02, 0.0, 0.005]


def test_a_change_does_not_wait_for_the_backoff(hand: QueueInHand):
    hand.finish(hand.leased(), result="rejected")
    hand.mark()

    assert hand.take_all() == [KEY]


def test_a_sync_that_went_ahead_of_the_backoff_stands_in_for_the_retry(hand: QueueInHand):
    hand.finish(hand.leased(), result="rejected")
    hand.mark()
    hand.take_all()
    hand.finish(hand.lease())
    hand.wait(2000)

    assert hand.take_all() == []


def test_a_throttled_key_comes_back_when_the_webhook_said(hand: QueueInHand):
    hand.finish(hand.leased(), result="throttled", after=30.0)
    hand.wait(29.9)
    assert hand.take_all() == []
    hand.wait(0.2)

    assert hand.take_all() == [KEY]


def test_resync_after_marks_the_key_when_its_time_is_over(hand: QueueInHand):
    hand.finish(hand.leased(), resync_after=10.0)
    hand.wait(9.9)
    assert hand.take_all() == []
    hand.wait(0.2)

    assert hand.take_all() == [KEY]


def test_of_two_wishes_to_be_resynced_the_earliest_wins(hand: QueueInHand):
    hand.finish(hand.leased(), resync_after=10.0)
    hand.finish(hand.leased(), resync_after=60.0)
    hand.wait(10.1)

    assert hand.take_all() == [KEY]


def test_a_controller_with_a_resync_period_has_its_keys_resynced_each_period(hand: QueueInHand):
    hand.queue.set_controller(controller_id(), resync_seconds=100.0, max_concurrent=None, now=hand.clock())
    hand.finish(hand.leased())
    runs = 0
    for _ in range(1000):
        hand.wait(1.0)
        for key in hand.take_all():
            runs += 1
            hand.finish(hand.lease(key), key)

    assert 9 <= runs <= 11


def test_resyncs_of_many_keys_are_spread_over_a_fifth_of_the_period(hand: QueueInHand):
    hand.queue.set_controller(controller_id(), resync_seconds=100.0, max_concurrent=None, now=hand.clock())
    for number in range(50):
        hand.finish(hand.leased(job_key(f"p{number}")), job_key(f"p{number}"))
    dues = sorted(entry.due(Purpose.RESYNC) or 0.0 for entry in hand.queue.entries())

    assert dues[0] >= hand.clock() + 90.0
    assert dues[-1] <= hand.clock() + 110.0
    assert dues[-1] - dues[0] > 10.0


def test_a_changed_period_holds_for_the_keys_that_are_known(hand: QueueInHand):
    hand.queue.set_controller(controller_id(), resync_seconds=10_000.0, max_concurrent=None, now=hand.clock())
    hand.finish(hand.leased())
    hand.queue.set_controller(controller_id(), resync_seconds=10.0, max_concurrent=None, now=hand.clock())
    hand.wait(12.0)

    assert hand.take_all() == [KEY]


# -- fair --------------------------------------------------------------------------------------------------------------


def test_no_more_jobs_lie_in_the_stream_than_the_window_lets_out(hand: QueueInHand):
    for number in range(100):
        hand.mark(job_key(f"p{number}"))

    first = hand.take_all()
    assert len(first) == Window().size

    hand.lease(first[0])
    assert len(hand.take_all()) == 1


def test_refused_offers_do_not_fill_the_window(hand: QueueInHand):
    for number in range(100):
        hand.mark(job_key(f"p{number}"))
    for key in hand.take_all():
        hand.queue.refused(key, now=hand.clock())

    assert len(hand.take_all()) == Window().size


def test_no_more_keys_of_a_controller_are_on_their_way_than_it_allows(hand: QueueInHand):
    hand.queue.set_controller(controller_id(), resync_seconds=None, max_concurrent=2, now=hand.clock())
    for number in range(5):
        hand.mark(job_key(f"p{number}"))
    first, second = hand.take_all()
    lease = hand.lease(first)
    assert hand.take_all() == []

    hand.finish(lease, first)

    assert len(hand.take_all()) == 1
    assert second not in hand.take_all()


def all_leased(hand: QueueInHand) -> int:
    """How many keys go to workers, one after another, until none goes any more."""
    leased = 0
    while keys := hand.take_all():
        for key in keys:
            hand.queue.stored(key, now=hand.clock())
            hand.lease(key)
        leased += len(keys)
    return leased


def test_one_controller_leaves_room_to_others_whatever_its_backlog(hand: QueueInHand):
    """Its hook may hang: then each of its jobs keeps a worker's place until the time-out."""
    hand.queue.set_slots("worker", 16, now=hand.clock())
    for number in range(1000):
        hand.mark(job_key(f"p{number}"))

    assert all_leased(hand) == LIMITS.jobs_of_one_controller
    hand.mark(job_key("neighbour", controller="others"))
    assert hand.take_all() == [job_key("neighbour", controller="others")]


def test_with_more_workers_there_are_more_places_for_each_controller(hand: QueueInHand):
    hand.queue.set_slots("worker", 16, now=hand.clock())
    for number in range(1000):
        hand.mark(job_key(f"p{number}"))
    all_leased(hand)

    hand.queue.set_slots("another", 16, now=hand.clock())

    assert all_leased(hand) == LIMITS.jobs_of_one_controller


# -- goodbye -----------------------------------------------------------------------------------------------------------


def test_a_parent_that_is_gone_costs_one_claim_and_is_forgotten(hand: QueueInHand):
    hand.finish(hand.leased(), result="retry", resync_after=5.0)
    hand.mark()
    hand.take_all()
    lease = hand.lease()
    hand.queue.dismiss(lease)
    hand.receipt(lease)

    assert hand.queue.entry(KEY) is None
    hand.wait(2000)
    assert hand.take_all() == []


def test_a_forgotten_key_does_not_run(hand: QueueInHand):
    hand.finish(hand.leased(), result="retry")
    hand.mark()

    hand.queue.forget(KEY)

    assert hand.take_all() == []
    assert hand.queue.entry(KEY) is None


def test_a_forgotten_key_that_is_marked_again_runs(hand: QueueInHand):
    lease = hand.leased()
    hand.queue.forget(KEY)
    hand.mark()
    hand.finish(lease)

    assert hand.take_all() == [KEY]


def test_a_forgotten_controller_takes_its_keys_with_it(hand: QueueInHand):
    hand.queue.set_controller(controller_id(), resync_seconds=10.0, max_concurrent=1, now=hand.clock())
    hand.mark(job_key("a"))
    hand.mark(job_key("b", controller="other"))

    hand.queue.forget_controller(controller_id())

    assert [key.name for key in hand.take_all()] == ["b"]


def test_a_controller_that_comes_back_starts_without_its_old_limit(hand: QueueInHand):
    hand.queue.set_controller(controller_id(), resync_seconds=None, max_concurrent=0, now=hand.clock())
    hand.queue.forget_controller(controller_id())
    hand.mark()

    assert hand.take_all() == [KEY]


# -- controllers that aren't ours yet ----------------------------------------------------------------------------------


def test_nothing_of_a_blocked_controller_is_handed_out_until_it_is_unblocked(hand: QueueInHand):
    other = job_key(controller="other")
    hand.queue.block(KEY.controller)
    hand.mark()
    hand.mark(other)
    assert hand.take_all() == [other]
    assert isinstance(hand.claim(), Busy)

    hand.queue.unblock(KEY.controller)

    assert hand.take_all() == [KEY]
    assert isinstance(hand.claim(), Lease)


def test_a_job_that_is_in_the_stream_is_not_granted_while_its_controller_is_blocked(hand: QueueInHand):
    hand.mark()
    assert hand.take_all() == [KEY]

    hand.queue.block(KEY.controller)

    assert isinstance(hand.claim(), Busy)


def test_what_is_in_hand_of_a_blocked_controller_goes_on_to_its_end(hand: QueueInHand):
    lease = hand.leased()
    hand.queue.block(KEY.controller)
    hand.mark()
    assert hand.renew(lease)
    assert hand.queue.is_leased(KEY.controller)

    hand.finish(lease)

    assert not hand.queue.is_leased(KEY.controller)
    assert hand.take_all() == []
