"""Events on controllers are a leader's to record."""

from metaloop.watcher.controller_events import LeaderRecorder

from .scenes import Heard


def test_events_are_recorded_only_while_this_watcher_leads():
    """A process that stalled learns that another leads before its term is cancelled."""
    heard, leads = Heard(), [True]
    recorder = LeaderRecorder(heard, leads=lambda: leads[0])
    recorder.record({"metadata": {"name": "c"}}, "Normal", "Started", "while it leads")

    leads[0] = False
    recorder.record({"metadata": {"name": "c"}}, "Normal", "Stopped", "later")

    assert heard.of("c") == ["Started"]
