"""The embedded nats-server: who gets in, and what survives it."""

import asyncio
from pathlib import Path

from metaloop.devkit.broker import Broker
from metaloop.devkit.ports import LOOPBACK, free_port


async def info_and_answer(url: str, *, token: str) -> tuple[bytes, bytes]:
    """What the server says first, and its answer to a CONNECT with a token: the protocol is lines of text."""
    reader, writer = await asyncio.open_connection(LOOPBACK, int(url.rpartition(":")[2]))
    info = await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"auth_token":"%s"}\r\nPING\r\n' % token.encode())
    answer = await reader.readline()
    writer.close()
    return info, answer


def token_of(url: str) -> str:
    return url.removeprefix("nats://").partition("@")[0]


async def test_it_serves_jetstream_and_large_payloads_to_who_has_its_token(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        info, answer = await info_and_answer(broker.url, token=token_of(broker.url))

    assert b'"jetstream":true' in info
    assert b'"max_payload":8388608' in info
    assert answer == b"PONG\r\n"


async def test_it_turns_away_who_has_not(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        _, answer = await info_and_answer(broker.url, token="guessed")

    assert answer.startswith(b"-ERR")


async def test_it_listens_on_the_port_that_it_is_given(tmp_path: Path) -> None:
    port = free_port()

    async with Broker.start(tmp_path, port=port) as broker:
        assert broker.url.endswith(f":{port}")


async def test_a_killed_broker_comes_back_on_its_port_with_its_store(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        kept = broker.store / "kept"
        kept.touch()
        await broker.kill()
        await broker.restart()

        _, answer = await info_and_answer(broker.url, token=token_of(broker.url))
        assert answer == b"PONG\r\n"
        assert kept.exists()


async def test_a_wiped_broker_comes_back_empty(tmp_path: Path) -> None:
    async with Broker.start(tmp_path) as broker:
        kept = broker.store / "kept"
        kept.touch()

        await broker.wipe()

        assert not kept.exists()
        assert broker.store.exists()
