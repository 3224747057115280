"""Checks, some time after a call began to connect, whether the endpoint has accepted its connection.

A server whose listen backlog is full sends no error. Either the connection is never established, or it is established
only on this side: the request that is sent on it is never acknowledged. The kernel tells both cases in `TCP_INFO`.
"""

import asyncio
import socket
import struct
from contextvars import ContextVar
from typing import Final

from metaloop.common.machine import monotonic
from metaloop.hookgateway.connect_limiter import ConnectLimiter

CHECK_AFTER_SECONDS: Final = 0.7
"""Less than the second after which the kernel sends a SYN again."""

_SYN_SENT: Final = 2
_TCP_INFO: Final = struct.Struct("=B x B 117x Q")
"""Three fields of Linux' `struct tcp_info`: state, retransmits of the oldest segment, acknowledged bytes."""

_BYTES_OF_SYN: Final = 1


class AcceptProbe:
    """Watches one call until its connection is accepted.

    If others are accepted and it is not, its timeout is made to expire.
    """

    def __init__(self, limiter: ConnectLimiter, timeout: asyncio.Timeout) -> None:
        self._limiter = limiter
        self.timeout = timeout
        self._began_at = monotonic()
        self._sockets: list[socket.socket] = []
        self._check_handle: asyncio.TimerHandle | None = None
        self._is_accepted = False
        self.has_given_up = False
        """Whether the call was cut short because the endpoint accepts others and not this one."""

        if limiter.is_limited:
            self._schedule_check()

    def connecting(self, opened: socket.socket) -> None:
        """Watch this socket too: a new connection is about to be made, as no idle one was there."""
        self._sockets.append(opened)
        if self._check_handle is None:
            self._schedule_check()

    def close(self, *, was_answered: bool) -> None:
        """Stop watching: the call is over."""
        if self._check_handle is not None:
            self._check_handle.cancel()
        if not self._is_accepted:
            self._limiter.release(was_accepted=was_answered)

    def _schedule_check(self) -> None:
        self._check_handle = asyncio.get_running_loop().call_later(CHECK_AFTER_SECONDS, self._check)

    def _check(self) -> None:
        if not self._sockets or not all(_is_pending(opened) for opened in self._sockets):
            self._is_accepted = True
            self._limiter.release(was_accepted=True)
        elif self._limiter.should_back_off(pending_since=self._began_at):
            self.has_given_up = True
            self.timeout.reschedule(asyncio.get_running_loop().time())


current_accept_probe: ContextVar[AcceptProbe] = ContextVar("current_accept_probe")
"""The probe of the call that this task is making; the dialer hands it the sockets that it opens."""


def _is_pending(opened: socket.socket) -> bool:
    """Whether the peer has not accepted the connection although the kernel tried more than once.

    Known on Linux only.
    """
    if not hasattr(socket, "TCP_INFO"):
        return False
    try:
        state, retransmits, acknowledged = _TCP_INFO.unpack_from(opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size))
    except (OSError, struct.error):
        return True  # closed: another address of the name is being tried
    return state == _SYN_SENT or (retransmits > 0 and acknowledged <= _BYTES_OF_SYN)
