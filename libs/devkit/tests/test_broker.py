"""The nats-server of a run: its access, its restarts, its store."""

import asyncio
from pathlib import Path

from metaloop.common.bus.nats.connection import connected
from metaloop.devkit.broker import Broker
from metaloop.devkit.ports import LOOPBACK, free_port


async def info_and_answer(url: str, *, token: str) -> tuple[bytes, bytes]:
    """The server's first line, and its answer to a CONNECT with a token: the protocol is lines of text."""
    reader, writer = await asyncio.open_connection(LOOPBACK, int(url.rpartition(":")[2]))
    info = await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"auth_token":"%s"}\r\nPING\r\n' % token.encode())
    answer = await reader.readline()
    writer.close()
    return info, answer


def token_of(url: str) -> str:
    return url.removeprefix("nats://").partition("@")[0]


async def test_clients_with_the_token_get_jetstream_and_large_payloads(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        info, answer = await info_and_answer(broker.url, token=token_of(broker.url))

    assert b'"jetstream":true' in info
    assert b'"max_payload":8388608' in info
    assert answer == b"PONG\r\n"


async def test_clients_without_the_token_are_refused(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        _, answer = await info_and_answer(broker.url, token="guessed")

    assert answer.startswith(b"-ERR")


async def test_the_broker_listens_on_the_given_port(tmp_path: Path) -> None:
    port = free_port()

    async with Broker.start(tmp_path, port=port) as broker:
        assert broker.url.endswith(f":{port}")


async def test_a_restarted_broker_has_its_port_and_its_store(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        kept = broker.store / "kept"
        kept.touch()
        await broker.kill()
        await broker.restart()

        _, answer = await info_and_answer(broker.url, token=token_of(broker.url))
        assert answer == b"PONG\r\n"
        assert kept.exists()


async def test_a_wiped_broker_is_restarted_with_an_empty_store(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        kept = broker.store / "kept"
        kept.touch()

        await broker.wipe()

        assert not kept.exists()
        assert broker.store.exists()


async def test_a_store_with_a_limit_takes_no_more(tmp_path: Path) -> None:
    async with Broker.start(tmp_path, store_bytes=100_000) as broker, connected(broker.url, name="test") as connection:
        stream = b'{"name":"S","subjects":["s"],"storage":"file"}'
        await connection.request("$JS.API.STREAM.CREATE.S", stream, timeout_seconds=30.0)

        answers = [await connection.request("s", b"x" * 40_000, timeout_seconds=30.0) for _ in range(4)]

    assert [b"insufficient resources" in answer for answer in answers] == [False, False, False, True]
