"""Who may call an endpoint now, and who waits until fewer do."""

from functools import partial
from math import inf, isinf
from time import monotonic

from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import Line
from metaloop.hookgateway.core.crowd import Crowd
from metaloop.hookgateway.core.endpoint import Endpoint

log = get_logger()


class Places:
    """The places before one endpoint's door, first come, first served. There are as many as anybody wants, unless it takes fewer calls at once."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._crowd = Crowd()
        self._waiting = Line()

    @property
    def are_bounded(self) -> bool:
        """Whether somebody may have to wait for a place."""
        return self._crowd.bound < inf

    async def enter(self) -> bool:
        """Return when there is a place, which `leave` gives back; whether it was waited for."""
        if self._crowd.has_room and not self._waiting:
            self._crowd.knocking += 1
            return False
        await self._waiting.place(returned=partial(self.leave, was_taken=False))
        return True

    def leave(self, *, was_taken: bool) -> None:
        """A place is free: its call was taken by the endpoint, or is over."""
        if was_taken:
            self._crowd.taken(now=monotonic())
        self._crowd.knocking -= 1
        while self._crowd.has_room and self._waiting.give():
            self._crowd.knocking += 1

    def are_fewer(self, *, since: float) -> bool:
        """Whether a call that knocks in vain since then should come back, as the endpoint takes others: there are fewer places now."""
        calls, before = self._crowd.knocking, self._crowd.bound
        is_crowded = self._crowd.untaken(since=since, now=monotonic())
        if self._crowd.bound < before:
            say = log.warning if isinf(before) else log.debug
            say("endpoint.crowded", **{fields.ENDPOINT: self._endpoint.label, "calls": calls, "now": int(self._crowd.bound)})
        return is_crowded
