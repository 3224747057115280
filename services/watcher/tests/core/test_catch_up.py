"""When what is known may be from before something that happened."""

from metaloop.watcher.core.catch_up import CATCH_UP_SECONDS, CatchUp


def test_a_source_that_never_broke_is_not_behind():
    source = CatchUp()
    source.flows(0.0)

    assert not source.is_behind(0.0)


def test_a_source_that_broke_is_behind_until_news_has_flown_for_a_while():
    source = CatchUp()
    source.broke()
    assert source.is_behind(100.0)

    source.flows(100.0)

    assert source.is_behind(100.0 + CATCH_UP_SECONDS / 2)
    assert not source.is_behind(100.0 + CATCH_UP_SECONDS)


def test_a_source_that_nobody_will_mend_soon_holds_nobody_up():
    source = CatchUp()
    source.broke()

    source.give_up()

    assert not source.is_behind(0.0)
