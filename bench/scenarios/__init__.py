"""One scenario a file: what it does to a fresh rig, and the figures that come of it."""

from bench.scenarios import (
    backlog,
    change,
    claimable,
    create,
    crowd,
    finalize,
    idle,
    order,
    related,
    rest,
    restart,
    slow_hook,
    watcher_start,
    watching,
)
from bench.scenarios.scale import Scenario

SCENARIOS: dict[str, Scenario] = {
    "create": create.run,
    "wide": create.run_wide,
    "change": change.run,
    "rest": rest.run,
    "idle": idle.run,
    "slow-hook": slow_hook.run,
    "backlog": backlog.run,
    "finalize": finalize.run,
    "restart": restart.run,
    "crowd": crowd.run,
    "crowd-owned": crowd.run_owned,
    "order": order.run,
    "claimable": claimable.run,
    "events": watching.run_events,
    "large": watching.run_large,
    "related": related.run,
    "twenty-thousand": watcher_start.run_restart,
    "hundred": watcher_start.run_hundred,
}
