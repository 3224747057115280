"""What calls may use of shared resources: concurrent calls per controller, second attempts, bytes in memory."""

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class Bulkhead:
    """How many calls one controller may have in flight.

    Whatever its webhooks do, other controllers keep their share.
    """

    limit: int
    in_flight: int = 0

    def try_acquire(self) -> bool:
        """Count one more call if there is room for it; then `release` must follow. Returns whether there was."""
        if self.in_flight >= self.limit:
            return False
        self.in_flight += 1
        return True

    def release(self) -> None:
        """Count one call less."""
        self.in_flight -= 1


RETRY_SHARE: Final = 0.1
RETRY_RESERVE: Final = 10.0


@dataclass(slots=True)
class RetryBudget:
    """How many calls may be sent a second time: a tenth of all, and a small reserve.

    So retries never double the load of a failing endpoint.
    """

    balance: float = RETRY_RESERVE

    def deposit(self) -> None:
        """Note that a call is sent for the first time."""
        self.balance = min(self.balance + RETRY_SHARE, RETRY_RESERVE)

    def try_withdraw(self) -> bool:
        """Pay for sending a call again. Returns whether the balance allowed it."""
        if self.balance < 1:
            return False
        self.balance -= 1
        return True


@dataclass(slots=True)
class ByteBudget:
    """How many bytes of unfinished answers may be in memory.

    Hundreds of webhooks that each send the largest answer must not end the process.
    """

    limit: int
    used: int = 0

    def try_reserve(self, size: int) -> bool:
        """Count so many bytes more if there is room; then `release` must follow. Returns whether there was."""
        if self.used + size > self.limit:
            return False
        self.used += size
        return True

    def release(self, size: int) -> None:
        """Count so many bytes less."""
        self.used -= size
