"""Applies the deletion guards to each plan, and counts the parents that lost all their children lately."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from metaloop.common.job import ControllerId
from metaloop.common.machine import monotonic
from metaloop.reconciler.core.children.deletion_guard import DeletionLimits, Guarded, deletes_all, guarded
from metaloop.reconciler.core.model import ChildGroup, Observed, Plan

_WINDOW_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionGuards:
    """The guards of all syncs of this process."""

    limits: DeletionLimits
    clock: Callable[[], float] = monotonic
    _emptied: dict[ControllerId, deque[float]] = field(default_factory=dict[ControllerId, deque[float]])
    """When parents of each controller lost all their children, within the last minute."""

    def check(self, plan: Plan, children: tuple[ChildGroup, ...], observed: Observed) -> Guarded:
        """The part of a plan that may be carried out. Raises InvalidSpec if the controller's own limit is invalid."""
        controller = observed.controller.id
        checked = guarded(plan, children, observed, limits=self.limits, emptied=self._emptied_lately(controller))
        if self.limits.emptied_parents and deletes_all(checked.plan, children):
            self._emptied.setdefault(controller, deque()).append(self.clock())
        return checked

    def _emptied_lately(self, controller: ControllerId) -> int:
        emptied = self._emptied.get(controller)
        if emptied is None:
            return 0
        while emptied and emptied[0] < self.clock() - _WINDOW_SECONDS:
            emptied.popleft()
        return len(emptied)
