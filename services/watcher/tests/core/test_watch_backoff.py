"""How long a reflector waits, by how its watches end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.watcher.core.watch_backoff import Ending, WatchBackoff


@pytest.mark.parametrize(
    ("ending", "waits"),
    [
        (Ending.CLEAN, [0, 0, 0, 0.1, 0.2]),
        (Ending.EXPIRED, [0, 0.1, 0.2, 0.4, 0.8]),
        (Ending.UNREADABLE, [0, 0.1, 0.2, 0.4, 0.8]),
        (Ending.SILENT, [0, 0.1, 0.2, 0.4, 0.8]),
        (Ending.BROKEN, [0.1, 0.2, 0.4, 0.8, 1.6]),
        (Ending.REFUSED, [0.1, 0.2, 0.4, 0.8, 1.6]),
    ],
)
def test_fruitless_ends_in_a_row_are_waited_out_longer_and_longer(ending: Ending, waits: list[float]):
    backoff = WatchBackoff()

    assert [backoff.after(ending, made_progress=False) for _ in waits] == waits


@pytest.mark.parametrize(("ending", "longest"), [(Ending.BROKEN, 5.0), (Ending.REFUSED, 30.0), (Ending.CLEAN, 30.0)])
def test_there_is_a_longest_wait(ending: Ending, longest: float):
    backoff = WatchBackoff()

    assert [backoff.after(ending, made_progress=False) for _ in range(1000)][-1] == longest


@pytest.mark.parametrize("ending", [Ending.CLEAN, Ending.EXPIRED, Ending.UNREADABLE])
def test_an_end_after_news_is_resumed_at_once_whatever_was_before(ending: Ending):
    backoff = WatchBackoff(fruitless_ends=50)

    assert backoff.after(ending, made_progress=True) == 0


@pytest.mark.parametrize("ending", [Ending.EXPIRED, Ending.REFUSED])
def test_a_refusal_after_an_outage_is_retried_soon(ending: Ending):
    backoff = WatchBackoff()
    for _ in range(50):
        backoff.after(Ending.BROKEN, made_progress=False)

    assert [backoff.after(ending, made_progress=False) for _ in range(6)] == [1, 2, 4, 8, 16, 30]


def test_a_reset_starts_over():
    backoff = WatchBackoff(fruitless_ends=50)

    backoff.reset()

    assert backoff.after(Ending.REFUSED, made_progress=False) == 0.1


@given(st.lists(st.sampled_from(Ending), min_size=20, max_size=60))
def test_no_sequence_of_fruitless_ends_is_a_hot_loop(endings: list[Ending]):
    backoff = WatchBackoff()

    waits = [backoff.after(ending, made_progress=False) for ending in endings]

    assert all(wait > 0 for wait in waits[3:])
    assert sum(waits) > 15
