"""When a circuit breaker lets calls through."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from metaloop.hookgateway.core.breaker import Breaker, Permit, Rules, State, Wait

RULES = Rules(threshold=3, shortest_seconds=1.0, longest_seconds=4.0)


def permit_of(breaker: Breaker, *, now: float) -> Permit:
    permit = breaker.request(now=now)
    assert isinstance(permit, Permit)
    return permit


def opened(*, now: float = 0.0) -> Breaker:
    breaker = Breaker(RULES)
    for _ in range(RULES.threshold):
        breaker.failed(permit_of(breaker, now=now), now=now)
    return breaker


def test_circuit_opens_after_failures_in_a_row():
    assert opened().state is State.OPEN


def test_one_success_resets_the_count():
    """A webhook that fails only for some parents must go on serving the others."""
    breaker = Breaker(RULES)
    for _ in range(10):
        breaker.failed(permit_of(breaker, now=0.0), now=0.0)
        breaker.failed(permit_of(breaker, now=0.0), now=0.0)
        breaker.succeeded(permit_of(breaker, now=0.0))

    assert breaker.state is State.CLOSED


def test_open_circuit_lets_no_call_through_and_says_how_long_to_wait():
    assert opened().request(now=0.25) == Wait(0.75)


def test_half_open_circuit_sends_one_probe_and_lets_others_wait():
    breaker = opened()

    probe = breaker.request(now=1.0)

    assert isinstance(probe, Permit)
    assert probe.is_probe
    assert breaker.state is State.HALF_OPEN
    assert isinstance(breaker.request(now=1.0), Wait)
    assert isinstance(breaker.request(now=100.0), Wait)


def test_successful_probe_closes_the_circuit():
    breaker = opened()

    breaker.succeeded(permit_of(breaker, now=1.0))

    assert breaker.state is State.CLOSED
    assert not permit_of(breaker, now=1.0).is_probe


def test_failed_probe_opens_the_circuit_for_twice_as_long_up_to_the_longest():
    breaker, now, waits = opened(), 0.0, []
    for _ in range(4):
        wait = breaker.request(now=now)
        assert isinstance(wait, Wait)
        waits.append(wait.seconds)
        now += wait.seconds
        breaker.failed(permit_of(breaker, now=now), now=now)

    assert waits == [1.0, 2.0, 4.0, 4.0]


def test_circuit_that_was_closed_opens_for_the_shortest_time_again():
    breaker = opened()
    breaker.failed(permit_of(breaker, now=1.0), now=1.0)
    breaker.succeeded(permit_of(breaker, now=3.0))

    for _ in range(RULES.threshold):
        breaker.failed(permit_of(breaker, now=3.0), now=3.0)

    assert breaker.request(now=3.0) == Wait(1.0)


def test_calls_during_a_probe_wait_as_long_as_the_circuit_was_open():
    """One of a thousand parents is the probe.

    If the others came back each second, a hanging webhook would keep all workers busy.
    """
    breaker = opened()
    breaker.failed(permit_of(breaker, now=1.0), now=1.0)
    permit_of(breaker, now=3.0)

    assert breaker.request(now=3.0) == Wait(2.0)
    assert breaker.request(now=9.0) == Wait(2.0)


def test_after_an_abandoned_probe_the_next_call_is_the_probe():
    breaker = opened()

    breaker.abandoned(permit_of(breaker, now=1.0))

    assert permit_of(breaker, now=1.0).is_probe


def test_calls_from_before_the_circuit_opened_have_no_effect_on_it():
    breaker = Breaker(RULES)
    early = [permit_of(breaker, now=0.0) for _ in range(6)]
    for permit in early[:3]:
        breaker.failed(permit, now=0.0)

    breaker.failed(early[3], now=0.9)
    breaker.succeeded(early[4])

    assert breaker.state is State.OPEN
    assert permit_of(breaker, now=1.0).is_probe

    breaker.abandoned(early[5])
    assert isinstance(breaker.request(now=1.0), Wait)


class AnyOrder(RuleBasedStateMachine):
    """Calls begin and end in any order; at most one of them is ever a probe."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker(RULES)
        self.now = 0.0
        self.out: list[Permit] = []

    @rule()
    def request(self):
        permit = self.breaker.request(now=self.now)
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
    def at_most_one_probe_is_in_flight(self):
        assert sum(permit.is_probe for permit in self.out) <= 1

    def teardown(self):
        """Once all calls have ended, a call gets through: a breaker never locks up."""
        for permit in self.out:
            self.breaker.abandoned(permit)

        assert isinstance(self.breaker.request(now=self.now + RULES.longest_seconds), Permit)


TestAnyOrder = AnyOrder.TestCase
