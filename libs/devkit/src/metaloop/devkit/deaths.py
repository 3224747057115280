"""Tells a program that was killed now and then from one that keeps dying: a count, with no clock of its own."""

import signal
from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Deaths:
    """The recent deaths of one program that speak against starting it again."""

    limit: int = 5
    within_seconds: float = 30.0
    _times: deque[float] = field(default_factory=deque[float])

    def record(self, code: int, *, was_ready: bool, now: float) -> None:
        """Count a death. A SIGKILL of a program that served is somebody's decision, and says nothing about the program."""
        if code == -signal.SIGKILL and was_ready:
            return
        self._times.append(now)
        while self._times[0] < now - self.within_seconds:
            self._times.popleft()

    @property
    def too_many(self) -> bool:
        """Whether another start makes no sense."""
        return len(self._times) >= self.limit

    @property
    def pause_seconds(self) -> float:
        """How long to wait before the next start: longer with each recent death."""
        return 0.1 * 2 ** len(self._times)
