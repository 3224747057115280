"""Ends a call to a webhook when the one who asked for it may no longer have it made."""

import asyncio
from types import TracebackType
from typing import Final, Self

from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway.errors import CallerLeft, CallRefused, MalformedCall
from metaloop.hookgateway.incoming import IncomingCall

AFTER_SECONDS: Final = 0.05
"""Most calls are answered sooner than this. To watch them, too, would cost a fifth of what they cost."""

log = get_logger()


class CallWatch:
    """A block in which a task makes a call. Ends it when its caller leaves or does not renew its lease.

    The block then raises CallerLeft, LeaseEnded or MalformedCall, and the task goes on as if nobody had cancelled it.
    """

    def __init__(self, incoming: IncomingCall, *, lease_seconds: float | None) -> None:
        """`lease_seconds` counts from now; None is a call without a lease."""
        self._incoming = incoming
        self._loop = asyncio.get_running_loop()
        self._lease_ends = None if lease_seconds is None else self._loop.time() + lease_seconds
        self._task: asyncio.Task[object] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._reason: CallerLeft | CallRefused | None = None
        """Why the call was ended."""

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        after = self._loop.time() + AFTER_SECONDS
        self._timer = self._loop.call_at(after if self._lease_ends is None else min(after, self._lease_ends), self._begin)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        task, self._task = self._task, None
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        if task is not None and self._reason is not None and not task.uncancel() and isinstance(error, asyncio.CancelledError):
            raise self._reason from error

    def end(self, reason: CallerLeft | CallRefused) -> None:
        """End the call, unless it has ended. The block raises `reason`."""
        if self._task is not None and self._reason is None:
            self._reason = reason
            self._task.cancel()

    def _begin(self) -> None:
        self._watching = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        lease_seconds = None if self._lease_ends is None else self._lease_ends - self._loop.time()
        try:
            reason = await self._incoming.end(lease_seconds)
        except MalformedCall as malformed:
            reason = malformed
        if not isinstance(reason, CallerLeft):
            log.warning("call.ended", **{fields.ERROR: str(reason)})
        self.end(reason)
