"""What a scenario cost: CPU of each process per unit of work, and requests as the API server counted them."""

from collections.abc import Sequence

from bench.figures import Figure, Judged, Raw
from bench.run import Run
from bench.system import NAMESPACE
from bench.usage import API_SERVER, SERVICES, Usage
from metaloop.devkit.testbed.audit import Request, tally

_OTHERS = (API_SERVER, "etcd", "nats-server")


def cpu_ratio(run: Run, row: Judged, used: Usage) -> Figure:
    """Our CPU, in times that of kube-apiserver during the same scenario."""
    ours = used.ours_cpu_seconds
    return run.judge(row, ours / used.cpu_seconds[API_SERVER], raw=Raw(value=ours, unit="s"))


def cpu_each(used: Usage, *, count: int, what: str) -> list[Figure]:
    """CPU in ms for each of `count` units of work, which are called `what`: ours in all, then each process."""
    each = {"all of ours": used.ours_cpu_seconds, **{name: used.cpu_seconds[name] for name in (*SERVICES, *_OTHERS)}}
    return [Figure(name=f"  CPU per {what}, {name}", value=1_000 * cpu / count, unit="ms") for name, cpu in each.items()]


def in_namespace(requests: Sequence[Request]) -> list[Request]:
    """Those of our requests that are about the scenario's parents and children, not about controllers or leases."""
    return [request for request in requests if request.namespace == NAMESPACE]


def writes_of(requests: Sequence[Request]) -> int:
    """How many writes are among the requests of the scenario's namespace."""
    return sum(request.is_write for request in in_namespace(requests))


def reads_of(requests: Sequence[Request]) -> int:
    """How many reads are among the requests of the scenario's namespace."""
    return sum(request.is_read for request in in_namespace(requests))


def requests_each(requests: Sequence[Request], *, count: int, what: str) -> list[Figure]:
    """Our requests for each of `count` units of work by verb and resource, without rare ones; refused writes."""
    common = {name: number for name, number in sorted(tally(in_namespace(requests)).items()) if number > count / 10}
    refused = sum(request.is_write and request.code >= 400 for request in in_namespace(requests))
    return [
        *[Figure(name=f"  {name}, per {what}", value=number / count) for name, number in common.items()],
        Figure(name="  writes that the API server refused", value=refused),
    ]
