"""One scenario a file: what it does to a fresh rig, and the figures that come of it."""

from bench.scenarios import backlog, change, create, crowd, idle, rest, restart, slow_hook
from bench.scenarios.scale import Scenario

SCENARIOS: dict[str, Scenario] = {
    "create": create.run,
    "wide": create.run_wide,
    "change": change.run,
    "rest": rest.run,
    "idle": idle.run,
    "slow-hook": slow_hook.run,
    "backlog": backlog.run,
    "restart": restart.run,
    "crowd": crowd.run,
}
