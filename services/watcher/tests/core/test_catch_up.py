"""When what is known may be from before something that happened."""

from itertools import pairwise

from metaloop.watcher.core.catch_up import CATCH_UP_SECONDS, LONGEST_FREEZE_SECONDS, CatchUp


def test_a_source_that_never_broke_is_not_behind():
    source = CatchUp()
    source.flows(0.0)

    assert not source.is_behind(0.0)


def test_a_source_that_broke_is_behind_until_news_has_flown_for_a_while():
    source = CatchUp()
    source.broke(100.0)
    assert source.is_behind(110.0)

    source.flows(110.0)

    assert source.is_behind(110.0 + CATCH_UP_SECONDS / 2)
    assert not source.is_behind(110.0 + CATCH_UP_SECONDS)


def test_a_source_that_stays_broken_keeps_nobody_back_for_ever():
    source = CatchUp()
    for now in range(0, 300, 5):
        source.broke(float(now))

    assert source.is_behind(LONGEST_FREEZE_SECONDS - 0.1)
    assert not source.is_behind(LONGEST_FREEZE_SECONDS)
    assert source.is_given_up(LONGEST_FREEZE_SECONDS)
    assert not source.is_behind(300.0)


def test_a_source_that_breaks_as_soon_as_it_flows_keeps_nobody_back_for_ever():
    source = CatchUp()
    behind = [now / 2 for now in range(400) if _is_behind_after_a_break(source, now / 2)]

    assert max(_lengths_of_runs(behind)) <= LONGEST_FREEZE_SECONDS
    assert len(behind) / 400 <= 0.6


def test_a_source_that_is_back_after_a_long_time_is_waited_for_while_it_catches_up():
    source = CatchUp()
    source.broke(0.0)

    source.flows(300.0)

    assert source.is_behind(300.0)
    assert not source.is_behind(300.0 + CATCH_UP_SECONDS)


def test_a_source_that_nobody_will_mend_soon_holds_nobody_up():
    source = CatchUp()
    source.broke(0.0)

    source.give_up()

    assert not source.is_behind(0.0)
    assert source.is_given_up(0.0)


def test_a_source_that_has_caught_up_is_not_given_up():
    source = CatchUp()
    source.broke(0.0)
    source.flows(1.0)

    assert not source.is_given_up(100.0)


def _is_behind_after_a_break(source: CatchUp, now: float) -> bool:
    source.broke(now)
    source.flows(now + 0.1)
    return source.is_behind(now + 0.2)


def _lengths_of_runs(times: list[float]) -> list[float]:
    """How long each run of half seconds lasted."""
    runs = [[times[0]]]
    for before, now in pairwise(times):
        if now - before > 0.5:
            runs.append([])
        runs[-1].append(now)
    return [run[-1] - run[0] for run in runs if run]
