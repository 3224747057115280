"""How many calls an endpoint is sent at once."""

from math import inf

from metaloop.hookgateway.core.crowd import FEW, Crowd


def crowded(*, knocking: int = 100) -> Crowd:
    """So many calls knocked, of which one has in vain since 0, while another was taken."""
    crowd = Crowd(knocking=knocking)
    crowd.taken(now=0.1)
    assert crowd.untaken(since=0.0, now=0.7)
    return crowd


def taken_when_full(crowd: Crowd, times: int) -> None:
    for _ in range(times):
        crowd.knocking = int(min(crowd.bound, 100_000))
        crowd.taken(now=1.0)


def test_there_is_no_bound_while_all_calls_are_taken():
    crowd = Crowd(knocking=100_000)

    crowd.taken(now=1.0)

    assert crowd.has_room


def test_a_call_that_is_not_taken_while_others_are_leaves_places_for_a_few():
    crowd = crowded()

    assert crowd.bound == FEW
    crowd.knocking = 4
    assert crowd.has_room
    crowd.knocking = 5
    assert not crowd.has_room


def test_an_endpoint_that_takes_nobodys_call_is_down_and_not_crowded():
    crowd = Crowd(knocking=100)
    crowd.taken(now=0.1)

    assert not crowd.untaken(since=0.2, now=0.9)
    assert crowd.bound == inf


def test_all_calls_of_one_burst_come_back_and_count_once():
    crowd = crowded()
    taken_when_full(crowd, 3)

    assert crowd.untaken(since=0.0, now=0.8)

    assert crowd.bound == FEW + 3


def test_the_bound_doubles_with_each_round_up_to_half_of_what_was_too_much_and_rises_slowly_then():
    crowd = crowded(knocking=100)

    taken_when_full(crowd, 45)
    assert crowd.bound == 50

    taken_when_full(crowd, 4 * 50)
    assert 50.9 < crowd.bound < 51.1


def test_the_bound_stays_while_nobody_needs_another():
    crowd = crowded()
    crowd.knocking = 2

    crowd.taken(now=1.0)

    assert crowd.bound == FEW


def test_a_bound_that_is_high_enough_for_everybody_is_none_any_more():
    crowd = crowded(knocking=4000)

    taken_when_full(crowd, 1000)

    assert crowd.bound == inf


def test_a_bound_is_never_lower_than_a_few():
    crowd = crowded()
    for second in range(1, 10):
        crowd.taken(now=second + 0.1)
        crowd.untaken(since=second, now=second + 0.7)

    assert crowd.bound == FEW
    taken_when_full(crowd, 1)
    assert FEW < crowd.bound < FEW + 1
