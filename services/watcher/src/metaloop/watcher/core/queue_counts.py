"""What is counted of each controller's keys, for metrics. Each event costs an addition."""

from dataclasses import dataclass, field

from metaloop.common.distribution import Distribution

_BOUNDS = (1e-4, 1e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1000.0)
"""From a key that is claimed at once to one that waits for a webhook's outage to end."""


def _seconds() -> Distribution:
    return Distribution(_BOUNDS)


@dataclass(slots=True, kw_only=True)
class ControllerQueueCounts:
    """What happened to one controller's keys in this leader term."""

    adds: int = 0
    """Keys that were marked and were not marked already."""
    retries: int = 0
    """Syncs after which a retry was planned."""
    waited: Distribution = field(default_factory=_seconds)
    """How long marked keys waited until a worker claimed them."""
    worked: Distribution = field(default_factory=_seconds)
    """How long leases lasted."""
