from hypothesis import given
from hypothesis import strategies as st

from metaloop.watcher.core.timers import Timer, Timers


def timer(owner: str = "key") -> Timer[str]:
    return Timer(owner, 0)


def test_timers_fire_in_the_order_of_their_times():
    timers = Timers[str]()
    for due in (3.0, 1.0, 2.0):
        timers.set(timer(str(due)), due=due)

    fired = [fired.owner for fired in iter(lambda: timers.pop_due(10.0), None)]

    assert fired == ["1.0", "2.0", "3.0"]


def test_a_timer_that_is_not_due_does_not_fire():
    timers = Timers[str]()
    timers.set(timer(), due=5.0)

    assert timers.pop_due(4.9) is None
    assert timers.next_due() == 5.0


def test_a_timer_fires_once():
    timers = Timers[str]()
    timers.set(timer(), due=1.0)

    assert timers.pop_due(2.0) is not None
    assert timers.pop_due(2.0) is None
    assert timers.next_due() is None


def test_a_stopped_timer_does_not_fire():
    timers, stopped = Timers[str](), timer()
    timers.set(stopped, due=1.0)
    stopped.due = None

    assert timers.pop_due(2.0) is None


def test_a_timer_moved_to_later_fires_then():
    timers, moved = Timers[str](), timer()
    timers.set(moved, due=1.0)
    timers.set(moved, due=3.0)

    assert timers.pop_due(2.0) is None
    assert timers.pop_due(3.0) is moved


def test_a_timer_moved_to_earlier_fires_then_and_not_again():
    timers, moved = Timers[str](), timer()
    timers.set(moved, due=3.0)
    timers.set(moved, due=1.0)

    assert timers.pop_due(1.0) is moved
    assert timers.pop_due(9.0) is None


def test_a_timer_moved_a_thousand_times_keeps_one_entry():
    timers, lease = Timers[str](), timer()
    for due in range(1000):
        timers.set(lease, due=float(due))

    assert len(timers._heap) == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(0, 20))), max_size=40))
def test_any_history_of_sets_and_stops_fires_what_was_set_last(steps: list[tuple[int, int | None]]):
    timers = Timers[str]()
    owned = [timer(str(number)) for number in range(4)]
    expected: dict[str, float] = {}
    for number, due in steps:
        if due is None:
            owned[number].due = None
            expected.pop(str(number), None)
        else:
            timers.set(owned[number], due=float(due))
            expected[str(number)] = float(due)

    fired = dict[str, float]()
    for now in range(21):
        next_due = timers.next_due()
        assert next_due is None or next_due >= now
        while (due_timer := timers.pop_due(float(now))) is not None:
            fired[due_timer.owner] = float(now)

    assert fired == expected
