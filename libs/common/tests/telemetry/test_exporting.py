"""Where spans go and whose they are."""

import os
import platform
from pathlib import Path

import pytest

from metaloop.common.telemetry.exporting import resource_attributes, traces_url

ALL = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"


@pytest.mark.parametrize(
    ("configured", "environ", "url"),
    [
        ("", {}, ""),
        ("http://a:4318", {}, "http://a:4318/v1/traces"),
        ("http://a:4318/", {}, "http://a:4318/v1/traces"),
        ("http://a:4318/v1/traces", {}, "http://a:4318/v1/traces"),
        ("", {ALL: "http://b:4318"}, "http://b:4318/v1/traces"),
        ("", {TRACES: "http://c:4318/somewhere"}, "http://c:4318/somewhere"),
        ("", {ALL: "http://b:4318", TRACES: "http://c:4318/v1/traces"}, "http://c:4318/v1/traces"),
        ("http://a:4318", {ALL: "http://b:4318", TRACES: "http://c:4318"}, "http://a:4318/v1/traces"),
        ("http://a:4318", {"OTEL_SDK_DISABLED": "true"}, ""),
        ("http://a:4318", {"OTEL_SDK_DISABLED": "false"}, "http://a:4318/v1/traces"),
    ],
)
def test_url_is_that_of_the_setting_else_of_the_standard_variables(configured: str, environ: dict[str, str], url: str):
    assert traces_url(configured, environ) == url


def test_two_processes_of_a_service_are_told_apart():
    one, other = (resource_attributes("reconciler", {}) for _ in range(2))

    assert one["service.name"] == other["service.name"] == "metaloop-reconciler"
    assert one["service.instance.id"] != other["service.instance.id"]
    assert f"-{os.getpid()}-" in one["service.instance.id"]


def test_process_outside_of_a_cluster_has_no_pod():
    assert not [name for name in resource_attributes("watcher", {}) if name.startswith("k8s.")]


def test_pod_and_namespace_are_named_in_a_cluster(tmp_path: Path):
    file = tmp_path / "namespace"
    file.write_text("metaloop\n")

    attributes = resource_attributes("watcher", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, namespace_file=file)

    assert (attributes["k8s.pod.name"], attributes["k8s.namespace.name"]) == (platform.node(), "metaloop")
