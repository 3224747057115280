"""Sockets that notice when the machine at the other end is gone, although neither side has anything to say for a while."""

import socket
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a silent peer is believed to be there: the kernel asks it after `idle_seconds`, and again, and then gives it up."""

    idle_seconds: int
    interval_seconds: int
    probes: int
    unacknowledged_seconds: int = 0
    """How long the kernel waits for the peer to acknowledge what we sent, which ends before any probe; 0 leaves it to the kernel: a quarter of an hour."""


def keep_alive(connection: socket.socket, patience: Patience) -> None:
    """Have the kernel ask the peer whether it is there; what a listening socket is told so, the connections that it accepts inherit."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": patience.idle_seconds, "TCP_KEEPINTVL": patience.interval_seconds, "TCP_KEEPCNT": patience.probes}
    for option, value in options.items():
        if hasattr(socket, option):  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    if patience.unacknowledged_seconds and hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * patience.unacknowledged_seconds)
