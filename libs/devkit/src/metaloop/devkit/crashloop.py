"""Tells a program that was killed now and then from one in a crash loop: counts, without a clock of its own."""

import signal
from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class CrashHistory:
    """The recent crashes of one program."""

    limit: int = 5
    within_seconds: float = 30.0
    _times: deque[float] = field(default_factory=deque[float])

    def record(self, exit_code: int, *, was_ready: bool, now: float) -> None:
        """Count an exit as a crash, unless a program that was ready got SIGKILL: somebody else decided that."""
        if exit_code == -signal.SIGKILL and was_ready:
            return
        self._times.append(now)
        while self._times[0] < now - self.within_seconds:
            self._times.popleft()

    @property
    def is_crash_loop(self) -> bool:
        """Whether another start makes no sense."""
        return len(self._times) >= self.limit

    @property
    def backoff_seconds(self) -> float:
        """How long to wait before the next start: twice as long after each recent crash."""
        return 0.1 * 2 ** len(self._times)
