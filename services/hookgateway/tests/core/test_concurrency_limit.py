"""How many calls may wait for an endpoint to accept them."""

from math import inf

from metaloop.hookgateway.core.concurrency_limit import MIN_LIMIT, ConcurrencyLimit


def lowered(*, pending: int = 100) -> ConcurrencyLimit:
    """The limit after one of so many pending calls was not accepted while another one was."""
    limit = ConcurrencyLimit(pending=pending)
    limit.accepted(now=0.1)
    assert limit.not_accepted(since=0.0, now=0.7)
    return limit


def accept_at_limit(limit: ConcurrencyLimit, *, times: int) -> None:
    """Have calls accepted while as many are pending as may be."""
    for _ in range(times):
        limit.pending = int(min(limit.maximum, 100_000))
        limit.accepted(now=1.0)


def test_there_is_no_limit_while_all_calls_are_accepted():
    limit = ConcurrencyLimit(pending=100_000)

    limit.accepted(now=1.0)

    assert limit.has_room


def test_limit_drops_when_one_call_is_not_accepted_and_others_are():
    limit = lowered()

    assert limit.maximum == MIN_LIMIT
    limit.pending = 4
    assert limit.has_room
    limit.pending = 5
    assert not limit.has_room


def test_endpoint_that_accepts_no_call_at_all_gets_no_limit():
    limit = ConcurrencyLimit(pending=100)
    limit.accepted(now=0.1)

    assert not limit.not_accepted(since=0.2, now=0.9)
    assert limit.maximum == inf


def test_calls_of_one_burst_all_back_off_and_lower_the_limit_once():
    limit = lowered()
    accept_at_limit(limit, times=3)

    assert limit.not_accepted(since=0.0, now=0.8)

    assert limit.maximum == MIN_LIMIT + 3


def test_limit_grows_fast_up_to_half_of_what_was_pending_and_slowly_above():
    limit = lowered(pending=100)

    accept_at_limit(limit, times=45)
    assert limit.maximum == 50

    accept_at_limit(limit, times=4 * 50)
    assert 50.9 < limit.maximum < 51.1


def test_limit_stays_while_no_call_waits_for_it():
    limit = lowered()
    limit.pending = 2

    limit.accepted(now=1.0)

    assert limit.maximum == MIN_LIMIT


def test_limit_that_is_high_enough_is_lifted():
    limit = lowered(pending=4000)

    accept_at_limit(limit, times=1000)

    assert limit.maximum == inf


def test_limit_and_slow_start_threshold_never_drop_below_the_minimum():
    limit = lowered()
    for second in range(1, 10):
        limit.accepted(now=second + 0.1)
        limit.not_accepted(since=second, now=second + 0.7)

    assert limit.maximum == MIN_LIMIT
    accept_at_limit(limit, times=1)
    assert MIN_LIMIT < limit.maximum < MIN_LIMIT + 1
