"""A clock that only moves when a test moves it."""


class FakeClock:
    """Called, it tells its time, as `time.monotonic` does."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now

    def advance(self, seconds: float) -> float:
        """The time after so many more seconds."""
        self.now += seconds
        return self.now
