"""The HTTP server of a process, over loopback: where it listens, what it shows, and how it ends."""

import asyncio
import socket

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from metaloop.common.server import Address, App, serving
from metaloop.common.settings import Listener

LOOPBACK = Listener(host="127.0.0.1", port=0)


class Gate:
    """A route whose requests are answered once the gate is open."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()

    async def pass_through(self) -> str:
        self.entered.set()
        await self.opened.wait()
        return "passed"


def app_with(gate: Gate) -> App:
    app = App("a test")
    app.add_api_route("/gate", gate.pass_through)
    return app


async def say_direct(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
    await send({"type": "http.response.body", "body": b"direct"})


def url(address: Address, path: str) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}{path}"


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here"))])
async def test_free_port_is_taken_and_told(host: str):
    gate = Gate()
    gate.opened.set()

    async with serving(app_with(gate), Listener(host=host, port=0)) as address, httpx.AsyncClient() as client:
        response = await client.get(url(address, "/gate"))

    assert address.host == host
    assert address.port > 0
    assert response.json() == "passed"


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
async def test_no_documentation_is_served(path: str):
    async with serving(app_with(Gate()), LOOPBACK) as address, httpx.AsyncClient() as client:
        assert (await client.get(url(address, path))).status_code == 404


async def test_answers_do_not_tell_what_serves_them():
    async with serving(App("a test"), LOOPBACK) as address, httpx.AsyncClient() as client:
        headers = (await client.get(url(address, "/"))).headers

    assert not {"server", "date"} & set(headers)


async def test_port_in_use_is_an_error_at_once():
    async with serving(App("first"), LOOPBACK) as address:
        with pytest.raises(OSError, match="in use"):
            async with serving(App("second"), Listener(host=address.host, port=address.port)):
                pytest.fail("the second server began")


async def test_port_is_free_again_after_the_block():
    async with serving(App("first"), LOOPBACK) as address:
        pass

    async with serving(App("second"), Listener(host=address.host, port=address.port)) as again:
        assert again == address


async def test_processes_may_share_a_port_if_both_say_so():
    async with serving(App("first"), Listener(host="127.0.0.1", port=0, reuse_port=True)) as address:
        shared = Listener(host="127.0.0.1", port=address.port, reuse_port=True)
        async with serving(App("second"), shared) as again:
            assert again == address


async def test_request_in_progress_is_finished_at_the_end():
    gate = Gate()
    async with httpx.AsyncClient() as client, asyncio.TaskGroup() as tasks, serving(app_with(gate), LOOPBACK) as address:
        asked = tasks.create_task(client.get(url(address, "/gate")))
        await gate.entered.wait()
        asyncio.get_running_loop().call_later(0.1, gate.opened.set)

    assert asked.result().json() == "passed"


async def test_request_that_never_ends_holds_the_server_for_a_second_only():
    gate = Gate()

    async def ask(client: httpx.AsyncClient, address: Address) -> str:
        try:
            return (await client.get(url(address, "/gate"))).text
        except httpx.RemoteProtocolError:
            return "cut"

    async with httpx.AsyncClient() as client, asyncio.TaskGroup() as tasks, asyncio.timeout(60):
        async with serving(app_with(gate), LOOPBACK) as address:
            asked = tasks.create_task(ask(client, address))
            await gate.entered.wait()
            began = asyncio.get_running_loop().time()
        seconds = asyncio.get_running_loop().time() - began

    assert 0.9 <= seconds < 45
    assert "passed" not in asked.result()


async def test_failure_in_the_block_ends_the_server_and_comes_out():
    with pytest.raises(ExceptionGroup) as caught:
        async with serving(App("a test"), LOOPBACK) as address:
            raise LookupError(str(address.port))

    [problem] = caught.value.exceptions
    async with serving(App("next"), Listener(host="127.0.0.1", port=int(str(problem)))) as again:
        assert again.port == int(str(problem))


async def test_direct_route_answers_its_method_alone():
    app = app_with(gate := Gate())
    gate.opened.set()
    app.serve_directly("POST", "/gate", say_direct)

    async with serving(app, LOOPBACK) as address, httpx.AsyncClient() as client:
        direct, routed = await client.post(url(address, "/gate")), await client.get(url(address, "/gate"))

    assert (direct.text, routed.json()) == ("direct", "passed")
