"""Limits the calls to one endpoint that it has not accepted yet."""

from functools import partial
from math import inf, isinf

from metaloop.common.machine import monotonic
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import WaiterQueue
from metaloop.hookgateway.core.concurrency_limit import ConcurrencyLimit
from metaloop.hookgateway.core.endpoint import Endpoint

log = get_logger()


class ConnectLimiter:
    """A semaphore whose size is the endpoint's concurrency limit. Waiters are served first come, first served."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._limit = ConcurrencyLimit()
        self._waiters = WaiterQueue()

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit at the moment."""
        return self._limit.maximum < inf

    @property
    def maximum(self) -> float:
        """How many calls may wait to be accepted; infinite while there is no limit."""
        return self._limit.maximum

    def try_acquire(self) -> bool:
        """Whether another call may be sent at once. If so, `release` must follow."""
        if not self._limit.has_room or self._waiters:
            return False
        self._limit.pending += 1
        return True

    async def acquire(self) -> None:
        """Wait until another call may be sent. `release` must follow."""
        if not self.try_acquire():
            await self._waiters.wait(on_unused=partial(self.release, was_accepted=False))

    def release(self, *, was_accepted: bool) -> None:
        """End the pending state of one call: the endpoint accepted it, or it is over."""
        if was_accepted:
            self._limit.accepted(now=monotonic())
        self._limit.pending -= 1
        while self._limit.has_room and self._waiters.wake_next():
            self._limit.pending += 1

    def should_back_off(self, *, pending_since: float) -> bool:
        """Whether a call that is pending since then should be sent again later, because the endpoint accepts others.

        If it should, the limit is lowered.
        """
        pending, before = self._limit.pending, self._limit.maximum
        should_back_off = self._limit.not_accepted(since=pending_since, now=monotonic())
        if self._limit.maximum < before:
            say = log.warning if isinf(before) else log.debug
            say(
                "endpoint.limited",
                **{fields.ENDPOINT: self._endpoint.label, fields.PENDING: pending, fields.LIMIT: int(self._limit.maximum)},
            )
        return should_back_off
