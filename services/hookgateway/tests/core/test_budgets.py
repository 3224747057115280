"""Limits on calls in flight, on second attempts and on bytes in memory."""

import pytest

from metaloop.hookgateway.core.budgets import RETRY_RESERVE, Bulkhead, ByteBudget, RetryBudget


def test_controller_has_no_more_calls_in_flight_than_its_limit():
    bulkhead = Bulkhead(2)

    assert [bulkhead.try_acquire(), bulkhead.try_acquire(), bulkhead.try_acquire()] == [True, True, False]

    bulkhead.release()
    assert bulkhead.try_acquire()


def test_retries_are_a_tenth_of_the_calls_once_the_reserve_is_spent():
    budget = RetryBudget()
    retries = 0
    for _ in range(1000):
        budget.deposit()
        retries += budget.try_withdraw()

    assert retries == pytest.approx(100 + RETRY_RESERVE, abs=2)


def test_bytes_are_reserved_up_to_the_limit_and_released():
    budget = ByteBudget(100)

    assert [budget.try_reserve(60), budget.try_reserve(41), budget.try_reserve(40)] == [True, False, True]

    budget.release(60)
    assert budget.try_reserve(60)
