"""Who leads: at most one at any time, whoever sleeps, and soon another when the leader is gone."""

import heapq
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metaloop.common.bus.links import ANSWER_SECONDS
from metaloop.watcher.core.election import SHORTEST_SECONDS, Election, LeaseRecord

LEASE_SECONDS = 15
AT = "2026-01-01T00:00:00.000000Z"


def held_by(holder: str, *, version: str = "1", renewed: str = AT) -> LeaseRecord:
    return LeaseRecord(holder=holder, duration_seconds=LEASE_SECONDS, renewed=renewed, resource_version=version)


def election(identity: str = "me", *, lease_seconds: int = LEASE_SECONDS) -> Election:
    return Election(identity=identity, lease_seconds=lease_seconds)


def test_a_lease_that_is_not_there_may_be_taken():
    candidate = election()
    candidate.see(LeaseRecord(), now=0)

    assert candidate.may_take(0)
    assert candidate.bid(at=AT).transitions == 0


def test_a_lease_may_be_taken_once_it_was_not_renewed_for_its_duration():
    candidate = election()
    candidate.see(held_by("other"), now=100)
    candidate.see(held_by("other"), now=110)

    assert not candidate.may_take(114.9)
    assert candidate.may_take(115)


def test_a_renewal_begins_the_wait_anew():
    candidate = election()
    candidate.see(held_by("other"), now=100)
    candidate.see(held_by("other", version="2"), now=110)

    assert not candidate.may_take(124.9)


def test_to_ask_for_a_lease_is_no_renewal_of_it():
    """Else a leader that died after it was cut off would be waited for as long as anybody asks."""
    candidate = election()
    candidate.see(replace(held_by("other"), is_cut_off=True), now=100)
    assert candidate.may_ask

    asked = replace(candidate.request(), resource_version="2")
    candidate.see(asked, now=110)

    assert (asked.holder, asked.wanted_by) == ("other", "me")
    assert not candidate.may_ask
    assert candidate.may_take(115)


def test_a_lease_is_asked_for_only_where_its_holder_is_cut_off():
    candidate = election()
    candidate.see(held_by("other"), now=100)

    assert not candidate.may_ask


def test_a_renewal_takes_no_notice_of_who_asked():
    leader = election()
    leader.see(replace(held_by("me"), is_cut_off=True, wanted_by="other"), now=100)

    bid = leader.bid(at=AT)

    assert (bid.is_cut_off, bid.wanted_by) == (False, "")


def test_a_released_lease_may_be_taken_at_once():
    former, candidate = election("former"), election()
    former.see(held_by("former"), now=0)

    candidate.see(replace(former.resign(at=AT), resource_version="2"), now=1)

    assert candidate.may_take(1)
    assert not former.holds(0)


def test_a_leader_stops_counting_on_its_lease_before_anybody_else_may_begin():
    leader = election()
    leader.won(held_by("me"), sent=100, now=101)

    assert leader.holds(109.9)
    assert not leader.holds(110)
    assert leader.seconds_left(105) == 5
    assert leader.seconds_left(200) == 0


@pytest.mark.parametrize("lease_seconds", [SHORTEST_SECONDS, 4, 5, 6, 15, 600])
def test_a_leaders_last_answer_is_no_longer_awaited_when_another_may_begin(lease_seconds: int):
    leader, other = (election(name, lease_seconds=lease_seconds) for name in ("me", "other"))
    other.see(replace(held_by("me"), duration_seconds=lease_seconds), now=100)
    leader.won(held_by("me"), sent=100, now=100)

    last_word = 100 + leader.seconds_left(100)

    assert not other.may_take(last_word + ANSWER_SECONDS - 0.001)
    assert other.may_take(100 + lease_seconds)


@pytest.mark.parametrize("lease_seconds", [SHORTEST_SECONDS, 4, 5, 6, 15, 600])
def test_a_leader_has_several_tries_to_renew_even_the_shortest_lease(lease_seconds: int):
    leader = election(lease_seconds=lease_seconds)
    leader.won(held_by("me"), sent=100, now=100)

    assert leader.holds(100 + 4 * leader.retry_seconds)


def test_a_change_of_the_holder_is_counted():
    candidate = election()
    candidate.see(held_by("other"), now=0)

    assert candidate.bid(at=AT).transitions == 1


def test_a_renewal_keeps_the_time_of_the_beginning():
    leader = election()
    leader.see(replace(held_by("me"), acquired="then"), now=0)

    bid = leader.bid(at=AT)

    assert (bid.acquired, bid.renewed, bid.transitions) == ("then", AT, 0)


class Rivals:
    """Three candidates and a server on a common time line.

    Requests and answers are late or lost, and everybody sleeps now and then.
    """

    def __init__(self, dice: random.Random, *, lease_seconds: int = LEASE_SECONDS) -> None:
        self._dice = dice
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._made = 0
        self._server = LeaseRecord()
        self.now = 0.0
        self.candidates = [election(name, lease_seconds=lease_seconds) for name in "abc"]
        for candidate in self.candidates:
            self._after(dice.uniform(0, 5), partial(self._try, candidate))

    def run(self, *, until: float) -> Iterator[list[str]]:
        """Who leads, after each event."""
        while self._events[0][0] < until:
            self.now, _, event = heapq.heappop(self._events)
            event()
            yield [candidate.identity for candidate in self.candidates if candidate.holds(self.now)]

    def _after(self, seconds: float, event: Callable[[], None]) -> None:
        self._made += 1
        heapq.heappush(self._events, (self.now + seconds, self._made, event))

    def _try(self, candidate: Election) -> None:
        candidate.see(self._server, now=self.now)
        if candidate.may_take(self.now):
            bid, sent = candidate.bid(at=str(self.now)), self.now
            self._after(self._latency(), lambda: self._decide(candidate, bid, sent))
        nap = self._dice.uniform(1, 40) if self._dice.random() < 0.1 else 0.0
        self._after(candidate.retry_seconds + nap, partial(self._try, candidate))

    def _decide(self, candidate: Election, bid: LeaseRecord, sent: float) -> None:
        if bid.resource_version == self._server.resource_version:
            self._server = replace(bid, resource_version=str(self._made))
            accepted = self._server
            if self._dice.random() < 0.9:
                self._after(self._latency(), lambda: candidate.won(accepted, sent=sent, now=self.now))

    def _latency(self) -> float:
        return self._dice.choice([0.0, 0.01, 1.0, 10.0, 30.0])


@given(st.integers(), st.integers(min_value=SHORTEST_SECONDS, max_value=LEASE_SECONDS))
@settings(max_examples=100)
def test_at_most_one_leads_at_any_time(seed: int, lease_seconds: int):
    for leaders in Rivals(random.Random(seed), lease_seconds=lease_seconds).run(until=600):
        assert len(leaders) <= 1, leaders


@given(st.integers())
@settings(max_examples=20)
def test_again_and_again_somebody_leads(seed: int):
    assert sum(len(leaders) for leaders in Rivals(random.Random(seed)).run(until=600)) > 10
