"""The keep-alive options of a connection."""

import socket

import pytest

from metaloop.common.keepalive import KeepAlive, enable_keep_alive

_KEEP_ALIVE = KeepAlive(idle_seconds=15, interval_seconds=5, probes=3, unacknowledged_seconds=7)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
def test_unacknowledged_data_ends_the_connection_in_time():
    with socket.socket() as connection:
        enable_keep_alive(connection, _KEEP_ALIVE)

        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7000
