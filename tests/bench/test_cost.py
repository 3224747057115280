"""What a scenario cost: CPU and requests for each unit of work."""

from pathlib import Path

import pytest

from bench.calibration import Calibration
from bench.cost import cpu_each, cpu_ratio, in_namespace, reads_of, requests_each, writes_of
from bench.figures import AtMost, Judged, Raw
from bench.run import Run
from bench.system import NAMESPACE
from bench.usage import Usage
from metaloop.devkit.testbed.audit import Request

RUN = Run(assets=Path(), calibration=Calibration(creates_per_second=2_000, create_cpu_seconds=0.001))
USED = Usage(
    cpu_seconds={"watcher": 1.0, "reconcilers": 2.5, "hookgateway": 0.5, "kube-apiserver": 8.0, "etcd": 2.0, "nats-server": 1.0},
    rss_bytes={"watcher": 10},
)


def request(verb: str, resource: str = "configmaps", *, namespace: str = NAMESPACE, code: int = 200) -> Request:
    return Request(verb=verb, resource=resource, namespace=namespace, name="x", user_agent="metaloop-watcher", code=code, at="")


def test_cpu_of_our_services_is_compared_with_that_of_the_api_server() -> None:
    figure = cpu_ratio(RUN, Judged(name="our CPU", unit="x", bound=AtMost(limit=1)), USED)

    assert (figure.value, figure.raw, figure.verdict) == (0.5, Raw(value=4.0, unit="s"), "holds")


def test_cpu_for_each_unit_of_work_is_told_for_each_process() -> None:
    figures = cpu_each(USED, count=1_000, what="parent")

    assert {figure.name.rpartition(", ")[2]: figure.value for figure in figures} == {
        "all of ours": 4.0,
        "watcher": 1.0,
        "reconcilers": 2.5,
        "hookgateway": 0.5,
        "kube-apiserver": 8.0,
        "etcd": 2.0,
        "nats-server": 1.0,
    }
    assert {figure.unit for figure in figures} == {"ms"}


def test_use_since_an_earlier_reading_is_new_cpu_and_present_memory() -> None:
    later = Usage(cpu_seconds={**USED.cpu_seconds, "watcher": 3.0, "new": 0.5}, rss_bytes={"watcher": 20})

    since = later.since(USED)

    assert (since.cpu_seconds["watcher"], since.cpu_seconds["etcd"], since.cpu_seconds["new"]) == (2.0, 0.0, 0.5)
    assert since.rss_bytes == {"watcher": 20}


def test_requests_of_other_namespaces_are_not_the_scenarios() -> None:
    requests = [request("create"), request("update", "leases", namespace="default"), request("list", namespace="")]

    assert [each.verb for each in in_namespace(requests)] == ["create"]


def test_watches_are_counted_as_neither_reads_nor_writes() -> None:
    requests = [request(verb) for verb in ("create", "update", "patch", "delete", "get", "list", "watch")]

    assert (writes_of(requests), reads_of(requests)) == (4, 2)


def test_requests_are_told_for_each_unit_of_work_without_the_rare_ones() -> None:
    requests = [*[request("create")] * 30, *[request("update", "things/status")] * 20, request("get")]

    figures = requests_each(requests, count=10, what="parent")

    assert [(figure.name.strip(), figure.value) for figure in figures] == [
        ("create configmaps, per parent", 3),
        ("update things/status, per parent", 2),
        ("writes that the API server refused", 0),
    ]


@pytest.mark.parametrize(("verb", "code", "refused"), [("create", 409, 1), ("update", 422, 1), ("create", 201, 0), ("get", 404, 0)])
def test_refused_writes_are_counted(verb: str, code: int, refused: int) -> None:
    assert requests_each([request(verb, code=code)], count=10, what="parent")[-1].value == refused
