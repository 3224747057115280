"""Which watcher of a shard gives way to which."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.bus.messages import Presence, PresenceRank

presences = st.builds(Presence, rank=st.sampled_from(PresenceRank), watcher=st.sampled_from("abc"))


def presence(rank: PresenceRank, watcher: str = "a") -> Presence:
    return Presence(rank=rank, watcher=watcher)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (presence(PresenceRank.ELECTED, "b"), presence(PresenceRank.SERVING, "a")),
        (presence(PresenceRank.SERVING, "b"), presence(PresenceRank.STARTING, "a")),
        (presence(PresenceRank.SERVING, "a"), presence(PresenceRank.SERVING, "b")),
        (presence(PresenceRank.STARTING, "a"), presence(PresenceRank.STARTING, "b")),
    ],
    ids=["elected before serving", "serving before starting", "of two that serve one", "of two that start one"],
)
def test_one_gives_way_to_the_other(first: Presence, second: Presence):
    assert first.precedes(second)
    assert not second.precedes(first)


def test_elected_watchers_leave_it_to_the_lease():
    assert not presence(PresenceRank.ELECTED, "a").precedes(presence(PresenceRank.ELECTED, "b"))
    assert not presence(PresenceRank.ELECTED, "b").precedes(presence(PresenceRank.ELECTED, "a"))


@given(presences, presences)
def test_never_do_two_give_way_to_each_other(one: Presence, other: Presence):
    assert not (one.precedes(other) and other.precedes(one))


@given(presences)
def test_presence_survives_the_wire(one: Presence):
    assert Presence.from_bytes(one.to_bytes()) == one
