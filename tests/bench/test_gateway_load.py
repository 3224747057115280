"""The load on the gateway and the webhook behind it, put together without a gateway between them."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from bench.gateway import hook
from bench.gateway.hook import BODY, SLOW_SECONDS
from bench.gateway.load import Load, call_to, direct_call, run_load
from metaloop.devkit.ports import LOOPBACK, free_port
from metaloop.devkit.probes import tcp_accepts
from metaloop.devkit.processes import Program, group


@pytest_asyncio.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """The port of the webhook's process."""
    port = free_port()
    argv = (sys.executable, hook.__file__, str(port))
    async with group() as daemons:
        await daemons.start(Program(name="hook", argv=argv, ready=tcp_accepts(LOOPBACK, port), folder=tmp_path))
        yield port


async def answers_to(port: int, *pieces: bytes, count: int = 1) -> list[bytes]:
    """The bodies of the answers on one connection to a request that is sent in pieces."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(30):
            return [await _answer(reader) for _ in range(count)]
    finally:
        writer.close()
        await writer.wait_closed()


async def _answer(reader: asyncio.StreamReader) -> bytes:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    headers = dict(line.split(": ", 1) for line in head.splitlines()[1:] if line)
    assert head.startswith("HTTP/1.1 200 OK\r\n")
    return await reader.readexactly(int(headers["Content-Length"]))


async def test_webhook_answers_with_four_kilobytes_of_json(port: int) -> None:
    [body] = await answers_to(port, direct_call("/fast"))

    assert (body, len(body)) == (BODY, 4096)
    assert json.loads(body).keys() == {"padding"}


@pytest.mark.parametrize("cut", [1, 20, -1, -4096, -4097])
async def test_request_that_arrives_in_pieces_is_answered_once_it_is_whole(port: int, cut: int) -> None:
    request = direct_call("/fast")

    assert await answers_to(port, request[:cut], request[cut:]) == [BODY]


async def test_requests_that_arrive_together_are_all_answered(port: int) -> None:
    assert await answers_to(port, direct_call("/fast") * 3, count=3) == [BODY] * 3


async def test_slow_call_takes_its_time_and_delays_no_other(port: int) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    slow = asyncio.ensure_future(answers_to(port, direct_call("/slow")))

    assert await answers_to(port, direct_call("/fast")) == [BODY]
    assert not slow.done()
    assert await slow == [BODY]
    assert loop.time() - began >= SLOW_SECONDS


async def test_each_call_in_flight_is_timed_and_none_is_an_error(port: int) -> None:
    load = await run_load(port, direct_call("/fast"), in_flight=4, seconds=0.3)

    assert load.errors == 0
    assert load.calls >= 4
    assert load.seconds >= 0.3
    assert load.rate == pytest.approx(load.calls / load.seconds)


async def test_slow_calls_in_flight_do_not_wait_for_one_another(port: int) -> None:
    load = await run_load(port, direct_call("/slow"), in_flight=20, seconds=0.1)

    assert (load.calls, load.errors) == (20, 0)
    assert min(load.latencies) >= SLOW_SECONDS * 0.99


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["another status", "another body"],
)
async def test_every_other_answer_is_an_error(answer: bytes) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(BODY):
                writer.write(answer)
        writer.close()

    async with await asyncio.start_server(refuse, LOOPBACK, 0) as server:
        load = await run_load(server.sockets[0].getsockname()[1], direct_call("/fast"), in_flight=2, seconds=0.2)

    assert load.errors == load.calls > 0


@pytest.mark.parametrize("number", [2, 100, 1_000])
def test_percentiles_are_those_of_the_latencies(number: int) -> None:
    load = Load(seconds=2, latencies=[index / number for index in range(1, number + 1)])

    assert load.rate == number / 2
    assert load.p50 == pytest.approx(0.5 + 0.5 / number)
    assert load.p50 < load.p99
    assert sum(latency > load.p99 for latency in load.latencies) <= max(1, number // 100)


def test_call_through_the_gateway_names_its_target() -> None:
    head, _, body = call_to(8080, "/slow", controller="c", timeout="3s").partition(b"\r\n\r\n")

    request, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    target = json.loads(headers["X-Metaloop-Target"])
    assert request == "POST /v1/call HTTP/1.1"
    assert (body, int(headers["Content-Length"])) == (BODY, len(BODY))
    assert target["controller"] == {"kind": "CompositeController", "name": "c", "uid": "c"}
    assert target["webhook"] == {"url": "http://127.0.0.1:8080/slow", "timeout": "3s", "etag": {"enabled": True}}
