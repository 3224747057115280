"""When calls may go out: circuits, bulkheads and budgets."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from metaloop.hookgateway.core.breaker import RETRY_RESERVE, Breaker, Bulkhead, ByteBudget, Permit, RetryBudget, Rules, State, Wait

RULES = Rules(threshold=3, shortest_seconds=1.0, longest_seconds=4.0)


def permit_of(breaker: Breaker, *, now: float) -> Permit:
    permit = breaker.ask(now=now)
    assert isinstance(permit, Permit)
    return permit


def opened(*, now: float = 0.0) -> Breaker:
    breaker = Breaker(RULES)
    for _ in range(RULES.threshold):
        breaker.failed(permit_of(breaker, now=now), now=now)
    return breaker


def test_circuit_opens_after_failures_in_a_row():
    assert opened().state is State.OPEN


def test_one_success_starts_the_count_again():
    """A webhook that fails for some parents only must go on serving the others."""
    breaker = Breaker(RULES)
    for _ in range(10):
        breaker.failed(permit_of(breaker, now=0.0), now=0.0)
        breaker.failed(permit_of(breaker, now=0.0), now=0.0)
        breaker.succeeded(permit_of(breaker, now=0.0))

    assert breaker.state is State.CLOSED


def test_open_circuit_lets_nobody_through_and_says_how_long():
    assert opened().ask(now=0.25) == Wait(0.75)


def test_after_its_time_one_probe_goes_out_and_everybody_else_waits():
    breaker = opened()

    probe = breaker.ask(now=1.0)

    assert isinstance(probe, Permit)
    assert probe.is_probe
    assert breaker.state is State.HALF_OPEN
    assert isinstance(breaker.ask(now=1.0), Wait)
    assert isinstance(breaker.ask(now=100.0), Wait)


def test_probe_that_succeeds_closes_the_circuit():
    breaker = opened()

    breaker.succeeded(permit_of(breaker, now=1.0))

    assert breaker.state is State.CLOSED
    assert not permit_of(breaker, now=1.0).is_probe


def test_probe_that_fails_opens_it_for_twice_as_long_up_to_the_longest():
    breaker, now, waits = opened(), 0.0, []
    for _ in range(4):
        wait = breaker.ask(now=now)
        assert isinstance(wait, Wait)
        waits.append(wait.seconds)
        now += wait.seconds
        breaker.failed(permit_of(breaker, now=now), now=now)

    assert waits == [1.0, 2.0, 4.0, 4.0]


def test_after_a_success_it_opens_for_the_shortest_time_again():
    breaker = opened()
    breaker.failed(permit_of(breaker, now=1.0), now=1.0)
    breaker.succeeded(permit_of(breaker, now=3.0))

    for _ in range(RULES.threshold):
        breaker.failed(permit_of(breaker, now=3.0), now=3.0)

    assert breaker.ask(now=3.0) == Wait(1.0)


def test_whoever_comes_while_the_probe_is_out_waits_as_long_as_the_circuit_was_open():
    """Of a thousand parents, one is the probe; were the others to come back each second, a webhook that hangs would keep everybody busy."""
    breaker = opened()
    breaker.failed(permit_of(breaker, now=1.0), now=1.0)
    permit_of(breaker, now=3.0)

    assert breaker.ask(now=3.0) == Wait(2.0)
    assert breaker.ask(now=9.0) == Wait(2.0)


def test_probe_whose_caller_left_gives_its_place_to_the_next_call():
    breaker = opened()

    breaker.abandoned(permit_of(breaker, now=1.0))

    assert permit_of(breaker, now=1.0).is_probe


def test_calls_from_before_the_circuit_opened_neither_close_it_nor_keep_it_open():
    breaker = Breaker(RULES)
    early = [permit_of(breaker, now=0.0) for _ in range(6)]
    for permit in early[:3]:
        breaker.failed(permit, now=0.0)

    breaker.failed(early[3], now=0.9)
    breaker.succeeded(early[4])

    assert breaker.state is State.OPEN
    assert permit_of(breaker, now=1.0).is_probe

    breaker.abandoned(early[5])
    assert isinstance(breaker.ask(now=1.0), Wait)


class AnyOrder(RuleBasedStateMachine):
    """Calls begin and end in any order; at most one of them is ever a probe."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(RULES)
        self.now = 0.0
        self.out: list[Permit] = []

    @rule()
    def ask(self):
        permit = self.breaker.ask(now=self.now)
        if isinstance(permit, Permit):
            self.out.append(permit)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), end=st.sampled_from(["succeeded", "failed", "abandoned"]))
    def end(self, data: st.DataObject, end: str):
        permit = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        match end:
            case "succeeded":
                self.breaker.succeeded(permit)
            case "failed":
                self.breaker.failed(permit, now=self.now)
            case _:
                self.breaker.abandoned(permit)

    @rule(seconds=st.floats(0, 5))
    def wait(self, seconds: float):
        self.now += seconds

    @invariant()
    def at_most_one_probe_is_out(self):
        assert sum(permit.is_probe for permit in self.out) <= 1

    def teardown(self):
        """Once all calls have ended, somebody gets through: a breaker never locks up."""
        for permit in self.out:
            self.breaker.abandoned(permit)

        assert isinstance(self.breaker.ask(now=self.now + RULES.longest_seconds), Permit)


TestAnyOrder = AnyOrder.TestCase


def test_a_controller_has_so_many_places_and_no_more():
    bulkhead = Bulkhead(2)

    assert [bulkhead.enter(), bulkhead.enter(), bulkhead.enter()] == [True, True, False]

    bulkhead.leave()
    assert bulkhead.enter()


def test_retries_are_a_tenth_of_the_calls_once_the_reserve_is_spent():
    budget = RetryBudget()
    spent = 0
    for _ in range(1000):
        budget.earn()
        spent += budget.spend()

    assert spent == pytest.approx(100 + RETRY_RESERVE, abs=2)


def test_bytes_are_held_up_to_the_limit_and_given_back():
    budget = ByteBudget(100)

    assert [budget.take(60), budget.take(41), budget.take(40)] == [True, False, True]

    budget.give_back(60)
    assert budget.take(60)
