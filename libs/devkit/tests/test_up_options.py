"""What `metaloop up` tells the services."""

from metaloop.devkit.cli.up import UpOptions


def options(*, watchers: int = 1) -> UpOptions:
    """The options of a plain `metaloop up`."""
    return UpOptions(
        kubeconfig=None,
        reconcilers=2,
        watchers=watchers,
        target_label_selector="",
        discovery_interval_seconds=30.0,
        apply_strategy="dynamic-apply",
        install_crds=True,
        ready_file=None,
        metrics_port_base=None,
        log_level="info",
    )


def test_spans_go_to_the_collector_that_runs():
    assert options().settings(otlp_endpoint="http://127.0.0.1:4318")["OTLP_ENDPOINT"] == "http://127.0.0.1:4318"


def test_endpoint_of_the_environment_counts_where_no_collector_is_started():
    assert "OTLP_ENDPOINT" not in options().settings()


def test_leader_is_elected_where_several_watchers_run():
    assert "LEADER_ELECTION" not in options().settings()
    assert options(watchers=2).settings()["LEADER_ELECTION"] == "true"
