"""Finds out, some time after a call began to connect, whether the endpoint has taken anything of it.

A server whose backlog is full says nothing. Either the connection is never there, or only we believe that it is: what we send then is not acknowledged.
"""

import asyncio
import socket
import struct
from contextvars import ContextVar
from time import monotonic
from typing import Final

from metaloop.hookgateway.places import Places

PATIENCE_SECONDS: Final = 0.7
"""Within a second the kernel has not even tried again."""

_SYN_SENT: Final = 2
_INFO: Final = struct.Struct("=B x B 117x Q")
"""Of Linux' `struct tcp_info`: the state, how often the oldest segment was sent again, and the bytes that were acknowledged."""
_BYTES_OF_SYN: Final = 1


class Knock:
    """One call at the door, where it has a place until it is taken: its time is cut short where others are let in and it is not."""

    def __init__(self, places: Places, limit: asyncio.Timeout) -> None:
        self._places = places
        self.limit = limit
        self._began_at = monotonic()
        self._sockets: list[socket.socket] = []
        self._look: asyncio.TimerHandle | None = None
        self._is_inside = False
        self.was_in_vain = False
        """Whether the limit was cut short since the endpoint takes fewer calls at once."""
        if places.are_bounded:
            self._look_later()

    def begin(self, opened: socket.socket) -> None:
        """A connection is about to be made, as no idle one is there."""
        self._sockets.append(opened)
        if self._look is None:
            self._look_later()

    def end(self, *, was_answered: bool) -> None:
        """The call is over."""
        if self._look is not None:
            self._look.cancel()
        if not self._is_inside:
            self._places.leave(was_taken=was_answered)

    def _look_later(self) -> None:
        self._look = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._look_after)

    def _look_after(self) -> None:
        if not self._sockets or not all(_is_untaken(opened) for opened in self._sockets):
            self._is_inside = True
            self._places.leave(was_taken=True)
        elif self._places.are_fewer(since=self._began_at):
            self.was_in_vain = True
            self.limit.reschedule(asyncio.get_running_loop().time())


current_knock: ContextVar[Knock] = ContextVar("current_knock")
"""That of the call which this task is making, for the sockets that are made for it."""


def _is_untaken(opened: socket.socket) -> bool:
    """Whether the other side has shown no sign that it took the connection, and we tried more than once. Known on Linux alone."""
    if not hasattr(socket, "TCP_INFO"):
        return False
    try:
        state, tries, acknowledged = _INFO.unpack_from(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size))
    except (OSError, struct.error):
        return True  # closed: another of the name's addresses is being tried
    return state == _SYN_SENT or (tries > 0 and acknowledged <= _BYTES_OF_SYN)
