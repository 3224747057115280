"""What the watcher can be told, and what it says of what it can't make sense of."""

import pytest

from metaloop.common.settings import load_settings
from metaloop.watcher.finalizer_releaser import ReleaseIntervals
from metaloop.watcher.health_writer import StatusIntervals
from metaloop.watcher.settings import WatcherSettings


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--shard", "3/2", "METALOOP_SHARD: Value error, shards are counted from 0: there is no shard 3 of 2"),
        ("--shard", "first", "METALOOP_SHARD: String should match pattern"),
        ("--target-label-selector", "team in (blue", "METALOOP_TARGET_LABEL_SELECTOR: Value error, label selector: can't read"),
        ("--namespaces", "a, b", "METALOOP_NAMESPACES: String should match pattern"),
        ("--leader-lease-seconds", "soon", "METALOOP_LEADER_LEASE_SECONDS: Input should be a valid integer"),
        ("--leader-lease-seconds", "2", "METALOOP_LEADER_LEASE_SECONDS: Input should be greater than or equal to 3"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_a_bad_end(option: str, value: str, complaint: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as raised:
        load_settings(WatcherSettings, [option, value])

    told = capsys.readouterr().err
    assert raised.value.code == 2
    assert told.startswith(complaint)
    assert told.count("\n") == 1


def test_watchers_of_different_shares_have_different_names():
    told = ([], ["--shard", "1/2"], ["--target-label-selector", "team=blue"], ["--target-label-selector", "team=red"])

    names = [load_settings(WatcherSettings, arguments).share.name for arguments in told]

    assert len({*names}) == len(told)


def test_controller_is_written_as_rarely_as_ever_by_default():
    settings = WatcherSettings()

    assert StatusIntervals.scaled(settings.controller_status_seconds) == StatusIntervals()
    assert 2 * settings.controller_status_seconds == ReleaseIntervals().first_seconds


def test_intervals_of_the_status_are_scaled_together():
    shorter, longer = StatusIntervals.scaled(0.5), StatusIntervals.scaled(50)

    assert shorter == StatusIntervals(check_seconds=0.1, first_seconds=0.5, condition_seconds=0.5, count_seconds=3, settle_seconds=3)
    assert longer == StatusIntervals(check_seconds=1, first_seconds=50, condition_seconds=50, count_seconds=300, settle_seconds=300)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::"])
def test_views_that_others_can_reach_need_a_token(host: str, capsys: pytest.CaptureFixture[str]):
    options = ["--debug-port", "8091", "--debug-host", host]

    with pytest.raises(SystemExit):
        load_settings(WatcherSettings, options)

    assert f"debug views on {host} show names of objects to everybody: set METALOOP_DEBUG_TOKEN" in capsys.readouterr().err
    assert load_settings(WatcherSettings, [*options, "--debug-token", "x"]).debug_listener.host == host


def test_views_on_loopback_need_none_and_are_off_by_default():
    assert load_settings(WatcherSettings, ["--debug-port", "8091"]).debug_token == ""
    assert load_settings(WatcherSettings, []).debug_port == 0


def test_namespaces_are_separated_by_commas():
    assert load_settings(WatcherSettings, ["--namespaces", "a,b,a"]).watched_namespaces == ("a", "b")
    assert WatcherSettings().watched_namespaces == ()
