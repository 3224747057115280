"""The testbed's client of an API server, before a server that turns requests away."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from metaloop.devkit.ports import free_ports
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, ApiRefused, Cluster

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def before(*answers: web.Response) -> AsyncIterator[tuple[Cluster, list[str]]]:
    """A client of a server that gives these answers in turn, and the methods of the requests that the server got."""
    left = list(answers)
    methods: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        methods.append(request.method)
        return left.pop(0)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    (port,) = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            yield Cluster(session), methods
    finally:
        await runner.cleanup()


def busy(**headers: str) -> web.Response:
    return web.json_response(
        {"kind": "Status", "code": 429}, status=429, headers={key.replace("_", "-"): value for key, value in headers.items()}
    )


async def test_a_429_that_says_when_to_come_again_is_obeyed():
    async with before(busy(Retry_After="0"), busy(Retry_After="0"), web.json_response({"kind": "ConfigMap"})) as (cluster, methods):
        created = await cluster.create(CONFIG_MAPS, {"kind": "ConfigMap"}, namespace="default")

    assert created == {"kind": "ConfigMap"}
    assert methods == ["POST"] * 3


async def test_a_server_that_stays_busy_is_asked_ten_times():
    async with before(*(busy(Retry_After="0") for _ in range(10))) as (cluster, methods):
        with pytest.raises(ApiRefused) as refused:
            await cluster.list(CONFIG_MAPS)

    assert refused.value.code == 429
    assert methods == ["GET"] * 10


async def test_a_429_that_does_not_say_when_is_an_answer():
    async with before(busy()) as (cluster, methods):
        with pytest.raises(ApiRefused):
            await cluster.list(CONFIG_MAPS)

    assert methods == ["GET"]
