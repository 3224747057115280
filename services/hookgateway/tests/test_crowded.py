"""Webhooks that take few calls at once: real servers, whose backlog is full."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from driving import asking
from webserver import Line, Request, response, serving

from metaloop.common.hooks.call import Accepted, Rejected
from metaloop.hookgateway.knock import PATIENCE_SECONDS

CALLS = 80
OK = Accepted(body=b"{}")


class OneAfterTheOther(BaseHTTPRequestHandler):
    """As in many a first hook: each call takes its time, and all others wait for it."""

    def do_POST(self) -> None:
        """Answer with an empty object."""
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.005)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called there
        """Nothing."""


@contextmanager
def serving_one_after_the_other() -> Iterator[str]:
    """The URL of such a hook."""
    with HTTPServer(("127.0.0.1", 0), OneAfterTheOther) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


async def test_every_call_to_a_server_that_takes_one_after_the_other_is_answered():
    """Its backlog holds five connections, and of those beyond the kernel says nothing."""
    with serving_one_after_the_other() as url:
        async with asking() as gateway:
            for _ in range(2):
                verdicts = await asyncio.gather(*(gateway.ask(url) for _ in range(CALLS)))
                assert verdicts == [OK] * CALLS


async def test_an_endpoint_that_takes_nobodys_call_is_waited_for_as_any_other():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening, socket.create_connection(listening.getsockname()):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        async with asking(breaker_threshold=1000) as gateway:
            verdicts = await asyncio.gather(*(gateway.ask({"url": url, "timeout": "1500ms"}) for _ in range(20)))

    assert [verdict.reason for verdict in verdicts if isinstance(verdict, Rejected)] == ["TimedOut"] * 20


async def test_calls_that_are_taken_and_slow_are_waited_for_all_at_once():
    arrived = 0
    all_arrived = asyncio.Event()

    async def slow(_: Request, line: Line) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == CALLS:
            all_arrived.set()
        await all_arrived.wait()
        await asyncio.sleep(PATIENCE_SECONDS)
        await line.send(response())

    async with serving(slow) as hook, asking() as gateway:
        verdicts = await asyncio.gather(*(gateway.ask(hook.url()) for _ in range(CALLS)))

    assert verdicts == [OK] * CALLS
    assert arrived == CALLS


async def test_a_server_that_was_surprised_by_a_burst_has_all_of_it_though_it_answers_none_before():
    """Its backlog was full for a moment, and it takes as many calls as there are."""
    arrived = 0
    all_arrived = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal arrived
        await reader.readuntil(b"{}")
        arrived += 1
        if arrived == CALLS:
            all_arrived.set()
        await all_arrived.wait()
        writer.write(response(connection="close"))
        writer.close()

    with socket.create_server(("127.0.0.1", 0), backlog=20) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        async with asking() as gateway:
            asked = asyncio.gather(*(gateway.ask({"url": url, "timeout": "30s"}) for _ in range(CALLS)))
            await asyncio.sleep(PATIENCE_SECONDS / 2)
            async with await asyncio.start_server(late, sock=listening, backlog=20):
                verdicts = await asked

    assert verdicts == [OK] * CALLS
