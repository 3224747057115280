import asyncio

import pytest

from metaloop.common.errors import LeaseLost
from metaloop.common.machine import boot_time
from metaloop.common.testing.clock import FakeClock
from metaloop.reconciler.lease import LeaseGuard


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(0.0)


@pytest.fixture
def guard(clock: FakeClock) -> LeaseGuard:
    return LeaseGuard("lease", asked_at=0.0, seconds=5.0, clock=clock)


async def for_ever(began: asyncio.Event) -> None:
    """Work that ends only if it is cancelled."""
    began.set()
    await asyncio.Event().wait()


def test_a_lease_is_good_until_it_ends(guard: LeaseGuard, clock: FakeClock):
    clock.now = 4.9

    guard.check()


def test_a_lease_that_ended_is_lost(guard: LeaseGuard, clock: FakeClock):
    clock.now = 5.0

    with pytest.raises(LeaseLost):
        guard.check()


def test_a_confirmed_renewal_moves_its_end_by_the_granted_length(guard: LeaseGuard, clock: FakeClock):
    guard.extend(asked_at=4.0)
    clock.now = 8.9
    guard.check()
    clock.now = 9.0

    with pytest.raises(LeaseLost):
        guard.check()


def test_a_confirmation_that_comes_after_the_end_is_too_late(guard: LeaseGuard, clock: FakeClock):
    clock.now = 6.0
    guard.extend(asked_at=4.0)

    with pytest.raises(LeaseLost):
        guard.check()


def test_a_lease_that_the_watcher_does_not_know_is_lost(guard: LeaseGuard):
    guard.lose()

    with pytest.raises(LeaseLost):
        guard.check()


def test_others_are_told_of_a_little_less_than_the_lease(guard: LeaseGuard, clock: FakeClock):
    clock.now = 1.0

    assert guard.lent_seconds == pytest.approx(3.75)


def test_listeners_hear_of_extensions_until_their_block_ends(guard: LeaseGuard):
    heard: list[float] = []
    with guard.on_extension(lambda: heard.append(guard.lent_seconds)):
        guard.extend(asked_at=1.0)
        guard.lose()
        guard.extend(asked_at=2.0)
    guard.extend(asked_at=3.0)

    assert heard == [pytest.approx(5.75)]


# -- work under a lease ------------------------------------------------------------------------------------------------


async def test_work_that_ends_in_time_has_its_result(guard: LeaseGuard):
    assert await guard.bound(asyncio.sleep(0, "done")) == "done"


async def test_work_is_cancelled_when_its_lease_ends():
    short = LeaseGuard("lease", asked_at=boot_time(), seconds=0.05, clock=boot_time)

    with pytest.raises(LeaseLost):
        await short.bound(for_ever(asyncio.Event()))


async def test_work_is_cancelled_when_its_lease_is_lost(guard: LeaseGuard):
    began = asyncio.Event()
    working = asyncio.create_task(guard.bound(for_ever(began)))
    await began.wait()

    guard.lose()

    with pytest.raises(LeaseLost):
        await working


async def test_work_goes_on_while_its_lease_is_renewed():
    renewed = LeaseGuard("lease", asked_at=boot_time(), seconds=1.0, clock=boot_time)
    working = asyncio.create_task(renewed.bound(asyncio.sleep(1.3, "done")))
    while not working.done():
        await asyncio.sleep(0.05)
        renewed.extend(asked_at=boot_time())

    assert working.result() == "done"


async def test_a_timeout_of_the_work_itself_is_no_lost_lease(guard: LeaseGuard):
    async def too_slow() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        await guard.bound(too_slow())


async def test_work_that_is_cancelled_by_others_stays_cancelled(guard: LeaseGuard):
    began = asyncio.Event()
    working = asyncio.create_task(guard.bound(for_ever(began)))
    await began.wait()

    working.cancel()

    with pytest.raises(asyncio.CancelledError):
        await working
