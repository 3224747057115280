import pytest

from metaloop.common.errors import LeaseLost
from metaloop.common.testing.clock import FakeClock
from metaloop.reconciler.lease import LeaseGuard


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0.0)


@pytest.fixture
def guard(clock: FakeClock) -> LeaseGuard:
    return LeaseGuard("lease", ends=5.0, clock=clock)


def test_a_lease_is_good_until_it_ends(guard: LeaseGuard, clock: FakeClock):
    clock.now = 4.9

    guard.check()


def test_a_lease_that_ended_is_lost(guard: LeaseGuard, clock: FakeClock):
    clock.now = 5.0

    with pytest.raises(LeaseLost):
        guard.check()


def test_a_confirmed_renewal_moves_its_end(guard: LeaseGuard, clock: FakeClock):
    guard.extend(ends=9.0)
    clock.now = 8.0

    guard.check()


def test_a_confirmation_that_comes_after_the_end_is_too_late(guard: LeaseGuard, clock: FakeClock):
    clock.now = 6.0
    guard.extend(ends=9.0)

    with pytest.raises(LeaseLost):
        guard.check()


def test_a_lease_that_the_watcher_does_not_know_is_lost(guard: LeaseGuard):
    guard.lose()

    with pytest.raises(LeaseLost):
        guard.check()
