"""Picks free TCP ports on the loopback address that no outgoing connection takes, and that no other process picks."""

import random
import socket

LOOPBACK = "127.0.0.1"

# Below the ports of outgoing connections (from 32768 on Linux), and below Kubernetes' node ports. A server that is
# restarted on a port of the outgoing range may find it taken by a client, in the worst case by one that reconnected to
# this very port and got connected to itself.
_CANDIDATES = range(20_000, 30_000)
_ATTEMPTS = 200

# A server needs seconds until it listens, and does not listen while it is restarted. As long as this process lives, the
# UDP port of the same number tells others of our kind that the TCP port is taken; the kernel releases it.


def free_port() -> int:
    """A port on which nothing listens, and which `free_port` returns to nobody else as long as this process lives.

    A program of another kind may still take it before a server is started on it.
    """
    for port in random.sample(_CANDIDATES, _ATTEMPTS):
        if is_free(port) and _is_reserved_now(port):
            return port
    raise OSError(f"no free port among {_ATTEMPTS} tried in {_CANDIDATES.start}-{_CANDIDATES.stop - 1}")


def free_ports(count: int) -> list[int]:
    """Free ports that all differ."""
    return [free_port() for _ in range(count)]


def free_range(count: int) -> int:
    """The first of so many free ports in a row."""
    for _ in range(_ATTEMPTS):
        first = free_port()
        if all(is_free(port) and _is_reserved_now(port) for port in range(first + 1, first + count)):
            return first
    raise OSError(f"no {count} free ports in a row in {_CANDIDATES.start}-{_CANDIDATES.stop - 1}")


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _is_reserved_now(port: int) -> bool:
    """Whether this process could reserve a port; False if it or another one did so before."""
    reservation = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        reservation.bind((LOOPBACK, port))
    except OSError:
        reservation.close()
        return False
    reservation.detach()  # the descriptor stays open until the process ends
    return True
