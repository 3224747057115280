"""A clock that moves only when a test advances it."""


class FakeClock:
    """A callable like `time.monotonic`."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now

    def advance(self, seconds: float) -> float:
        """Advance the clock; returns the new time."""
        self.now += seconds
        return self.now
