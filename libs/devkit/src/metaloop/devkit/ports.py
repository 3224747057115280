"""Picks TCP ports on the loopback address that are free now and stay free of our own clients."""

import random
import socket

LOOPBACK = "127.0.0.1"

# Below the range that kernels take for outgoing connections (32768 upwards on Linux), and below Kubernetes' node ports. A server
# that is killed and started again on a port of the outgoing range may find a client sitting on it: in the worst case one
# that was reconnecting to that very port and got connected to itself.
_CANDIDATES = range(20_000, 30_000)
_ATTEMPTS = 200


def free_port() -> int:
    """A port on which nothing listens now; another process may still take it first, so a start on it can fail."""
    for port in random.sample(_CANDIDATES, _ATTEMPTS):
        if is_free(port):
            return port
    raise OSError(f"no free port among {_ATTEMPTS} tried in {_CANDIDATES.start}-{_CANDIDATES.stop - 1}")


def free_ports(count: int) -> list[int]:
    """As many different free ports."""
    ports: list[int] = []
    while len(ports) < count:
        port = free_port()
        if port not in ports:
            ports.append(port)
    return ports


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
