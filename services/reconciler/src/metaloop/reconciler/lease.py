"""Whether this worker may still act for a parent."""

from collections.abc import Callable
from typing import TypeAlias

from metaloop.common.errors import LeaseLost

Clock: TypeAlias = Callable[[], float]


class LeaseGuard:
    """Asked before each write: the last moment to notice that another worker may have the parent by now.

    The end is counted from before the claim, or the last renewal that the watcher confirmed, was *sent*; the watcher
    counts from when it arrived. So for this worker the lease is over before anybody else can get one, whatever stood
    still in between.
    """

    def __init__(self, lease: str, *, ends: float, clock: Clock) -> None:
        self.lease = lease
        self._ends = ends
        self._clock = clock

    @property
    def is_valid(self) -> bool:
        """Whether the lease is ours now."""
        return self._clock() < self._ends

    def check(self) -> None:
        """Return where the lease is ours now. Raises LeaseLost where it may not be."""
        if not self.is_valid:
            raise LeaseLost(f"lease {self.lease} ran out")

    def extend(self, *, ends: float) -> None:
        """The watcher confirmed the lease until `ends`; a lease that was over stays over."""
        if self.is_valid:
            self._ends = ends

    def lose(self) -> None:
        """The watcher doesn't know the lease any more."""
        self._ends = float("-inf")
