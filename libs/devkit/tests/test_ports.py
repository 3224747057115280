"""Free ports for servers."""

import socket

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
