"""Free ports for servers."""

import socket
import subprocess
import sys

import pytest

from metaloop.devkit.ports import LOOPBACK, free_port, free_ports, free_range, is_free


def test_a_server_can_listen_on_a_picked_port() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        assert server.getsockname()[1] in range(20_000, 30_000)


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server((LOOPBACK, free_port())) as server:
        port = server.getsockname()[1]

        assert not is_free(port)

    assert is_free(port)


def test_ports_picked_together_differ() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20


def test_all_ports_of_a_range_are_free() -> None:
    first = free_range(5)

    assert all(is_free(port) for port in range(first, first + 5))


def test_a_picked_port_is_reserved_against_other_processes() -> None:
    """Its server listens only seconds later, and not at all while it is restarted."""
    port = free_port()

    reserves = f"from metaloop.devkit import ports; ports._CANDIDATES = range({port}, {port + 1}); ports._ATTEMPTS = 1; ports.free_port()"
    other = subprocess.run([sys.executable, "-c", reserves], capture_output=True, check=False)

    assert other.returncode != 0
    assert b"no free port" in other.stderr


def test_the_last_port_of_a_range_is_reserved_too() -> None:
    last = free_range(3) + 2

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other, pytest.raises(OSError, match="in use"):
        other.bind((LOOPBACK, last))
