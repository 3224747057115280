"""Related: the objects that parents' customize hooks asked for.

One rule serves all controllers, since the subscriptions are shared; what has to be watched for it changes with them.
What a claim shows of it is not a group of objects alone: it also says what is missing.
"""

from dataclasses import dataclass

from metaloop.common.job import JobKey
from metaloop.common.observation import CachedRelated
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.rules.rule import Unit
from metaloop.watcher.core.subscriptions import RelatedSubscriptions


@dataclass(frozen=True, slots=True, eq=False)
class Related:
    """The objects that parents are subscribed to."""

    subscriptions: RelatedSubscriptions

    def concerned(self, change: Change) -> set[JobKey]:
        """The units of work that are subscribed to an object."""
        return self.subscriptions.concerned_by(change)

    def shown(self, unit: Unit) -> CachedRelated | None:
        """What a unit's subscriptions select; None where it has none."""
        return self.subscriptions.observe(unit.key)
