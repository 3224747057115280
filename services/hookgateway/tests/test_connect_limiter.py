"""Webhooks that accept few connections at once: real servers whose listen backlog is full."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from in_process import running_gateway
from webserver import Request, ServerConnection, response, serving

from metaloop.common.faults import Fault
from metaloop.common.hooks.call import Accepted, Rejected
from metaloop.common.telemetry.traces import span
from metaloop.hookgateway.accept_probe import CHECK_AFTER_SECONDS
from metaloop.hookgateway.core.address import AddressPolicy
from metaloop.hookgateway.core.budgets import ByteBudget
from metaloop.hookgateway.core.credentials import NO_CREDENTIALS, Credentials
from metaloop.hookgateway.core.endpoint import Endpoint, resolve
from metaloop.hookgateway.core.verdict import Answer
from metaloop.hookgateway.dial import Dialer
from metaloop.hookgateway.errors import EndpointBusy
from metaloop.hookgateway.exchange import Bounds
from metaloop.hookgateway.pool import Pool
from metaloop.hookgateway.steps import Steps, current_steps
from metaloop.hookgateway.webhook import Transport, Webhook

CALLS = 80
OK = Accepted(body=b"{}")


class OneAtATime(BaseHTTPRequestHandler):
    """As in many a first hook: each call takes some time, and all others wait for it."""

    seconds = 0.005

    def do_POST(self) -> None:
        """Answer with an empty object."""
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(self.seconds)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so it is called there
        """Nothing."""


@contextmanager
def serving_one_at_a_time(*, seconds_each: float = 0.005) -> Iterator[str]:
    """The URL of such a hook."""

    class Slow(OneAtATime):
        seconds = seconds_each

    with HTTPServer(("127.0.0.1", 0), Slow) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


async def test_every_call_to_a_server_that_handles_one_at_a_time_is_answered():
    """Its backlog holds five connections, and the kernel drops those beyond silently."""
    with serving_one_at_a_time() as url:
        async with running_gateway() as gateway:
            for _ in range(2):
                verdicts = await asyncio.gather(*(gateway.call(url) for _ in range(CALLS)))
                assert verdicts == [OK] * CALLS


async def test_call_whose_turn_does_not_come_in_time_is_put_off():
    with serving_one_at_a_time(seconds_each=0.1) as url:
        webhook = Webhook(resolve({"url": url}, []), in_a_hurry())
        outcomes = await asyncio.gather(*(sent(webhook) for _ in range(CALLS)), return_exceptions=True)
        await webhook.close()

    put_off = [outcome for outcome in outcomes if isinstance(outcome, EndpointBusy)]
    assert put_off
    assert all(isinstance(outcome, Answer | EndpointBusy) for outcome in outcomes)


def in_a_hurry() -> Transport:
    """Calls wait for their turn for a moment only."""
    return Transport(opened=opened, bounds=Bounds(max_bytes=2**20, unfinished=ByteBudget(2**20)), turn_seconds=2 * CHECK_AFTER_SECONDS)


def opened(_: Endpoint, credentials: Credentials) -> Pool:
    """Connections over HTTP."""
    dialer = Dialer(AddressPolicy(allowed=(), denied=()), keepalive_seconds=1.0)
    return Pool(dialer, credentials, over_tls=False, proxy_from_environment=False)


async def sent(webhook: Webhook) -> Answer:
    """The answer to one call."""
    with span("test") as spanned:
        current_steps.set(Steps(spanned))
        return await webhook.send(b"{}", headers={}, credentials=NO_CREDENTIALS, timeout_seconds=30.0)


async def test_endpoint_that_accepts_no_call_at_all_has_the_whole_timeout():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening, socket.create_connection(listening.getsockname()):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        async with running_gateway(breaker_threshold=1000) as gateway:
            verdicts = await asyncio.gather(*(gateway.call({"url": url, "timeout": "1500ms"}) for _ in range(20)))

    assert [verdict.fault for verdict in verdicts if isinstance(verdict, Rejected)] == [Fault.TIMED_OUT] * 20


async def test_slow_calls_that_are_accepted_are_not_limited():
    arrived = 0
    all_arrived = asyncio.Event()

    async def slow(_: Request, connection: ServerConnection) -> None:
        nonlocal arrived
        arrived += 1
        if arrived == CALLS:
            all_arrived.set()
        await all_arrived.wait()
        await asyncio.sleep(CHECK_AFTER_SECONDS)
        await connection.send(response())

    async with serving(slow) as hook, running_gateway() as gateway:
        verdicts = await asyncio.gather(*(gateway.call(hook.url()) for _ in range(CALLS)))

    assert verdicts == [OK] * CALLS
    assert arrived == CALLS


async def test_slow_server_with_a_full_backlog_gets_the_whole_burst_at_once():
    """Its backlog is full for a moment, and then it accepts everything, before it answers anything."""
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
        async with running_gateway() as gateway:
            asked = asyncio.gather(*(gateway.call({"url": url, "timeout": "30s"}) for _ in range(CALLS)))
            await asyncio.sleep(CHECK_AFTER_SECONDS / 2)
            async with await asyncio.start_server(late, sock=listening, backlog=20):
                verdicts = await asked

    assert verdicts == [OK] * CALLS
