"""Every metric that Metaloop exports, as `/metrics` of its services would name it."""

import asyncio
from collections.abc import Iterable

from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import metrics
from metaloop.common.telemetry.metrics import Family
from metaloop.hookgateway import app as hookgateway
from metaloop.hookgateway.metrics import export_connect_limits
from metaloop.reconciler import app as reconciler
from metaloop.reconciler.sync_numbers import numbers
from metaloop.watcher import app as watcher
from metaloop.watcher.controller_numbers import ControllerNumbers
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.metrics import export_caches, export_leadership, export_queue
from metaloop.watcher.routing import Routing

_SERVICES = (watcher, reconciler, hookgateway)
"""Imported, each defines what it counts."""

PROCESS = frozenset({
    "up",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "process_open_fds",
    "process_max_fds",
})  # fmt: skip
"""What Prometheus itself, or its client library, exports of any process."""


class _Served:
    """What the API server serves: nothing."""

    resources: dict[ResourceId, ResourceInfo]

    def __init__(self) -> None:
        self.resources = {}


def families() -> list[Family]:
    """The metrics of all services, by name; those of tests are left out."""
    routing = Routing(shard="0", limits=Limits(), served=_Served(), changed=asyncio.Event())
    export_queue(routing.queue)
    export_caches(routing.caches, clock=lambda: 0.0)
    export_leadership("lease", lambda: True)
    ControllerNumbers(router=routing.router, queue=routing.queue).export()
    numbers.export_workers(dict, most=1)
    export_connect_limits(dict)
    return [family for family in metrics.families() if not family.name.startswith("metaloop_test_")]


def series(exported: Iterable[Family]) -> frozenset[str]:
    """The names that a query may ask for."""
    return PROCESS.union(*(family.series for family in exported))
