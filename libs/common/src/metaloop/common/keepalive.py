"""TCP keep-alive: detects that a peer's machine is gone while neither side has anything to send."""

import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """When the kernel gives up a silent peer.

    It sends a probe after `idle_seconds`, then one each `interval_seconds`.
    """

    idle_seconds: int
    interval_seconds: int
    probes: int
    """How many unanswered probes end the connection."""
    unacknowledged_seconds: int = 0
    """How long sent data may stay unacknowledged, which ends the connection before any probe. 0 is the kernel's
    default, a quarter of an hour."""


def enable_keep_alive(connection: socket.socket, keep_alive: KeepAlive) -> None:
    """Have the kernel probe the peer. Connections that a listening socket accepts inherit its settings."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": keep_alive.idle_seconds,
        "TCP_KEEPINTVL": keep_alive.interval_seconds,
        "TCP_KEEPCNT": keep_alive.probes,
    }
    for option, value in options.items():
        if hasattr(socket, option):  # not every operating system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if keep_alive.unacknowledged_seconds and hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * keep_alive.unacknowledged_seconds)
