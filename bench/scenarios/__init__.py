"""One scenario a file: what it does to a fresh system, and the figures that it measures."""

from bench.run import Scenario
from bench.scenarios import (
    backlog,
    create,
    dispatch,
    finalize,
    gateway,
    large_parent,
    latency,
    related_events,
    restart,
    resync,
    resync_backlog,
    slow_hook,
    unrelated,
    update,
    watch_cost,
    watcher_alone,
)

SCENARIOS: dict[str, Scenario] = {
    "create": create.measure,
    "create-wide": create.measure_wide,
    "update": update.measure,
    "resync": resync.measure,
    "latency": latency.measure,
    "slow-hook": slow_hook.measure,
    "backlog": backlog.measure,
    "resync-backlog": resync_backlog.measure,
    "large-parent": large_parent.measure,
    "finalize": finalize.measure,
    "restart": restart.measure,
    "watcher-restart": watcher_alone.measure_restart,
    "unrelated-orphans": unrelated.measure_orphans,
    "unrelated-owned": unrelated.measure_owned,
    "dispatch": dispatch.measure,
    "child-events": watch_cost.measure_events,
    "related-events": related_events.measure,
    "gateway": gateway.measure,
    "large-cache": watch_cost.measure_cache,
    "idle-watches": watcher_alone.measure_idle,
}
