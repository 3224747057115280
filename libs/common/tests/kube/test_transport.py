"""Requests to a server on loopback that misbehaves on purpose."""

import asyncio
import time
from contextlib import aclosing

import pytest
from scripted_server import ScriptedServer, kubeconfig_bytes

from metaloop.common.errors import Unavailable
from metaloop.common.http.connection import always
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import TooManyRequests, Unanswered, Unreadable
from metaloop.devkit.testbed.cluster import NAMESPACES

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class NotPermitted(Exception):
    """A request is not permitted."""


class Permits:
    """Permits so many requests."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotPermitted


def busy(retry_after: str) -> bytes:
    return b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: %s\r\nContent-Length: 4\r\n\r\nbusy" % retry_after.encode()


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(content), content)


async def test_rejected_request_is_sent_again_after_the_servers_delay(scripted: ScriptedServer):
    scripted.script = [busy("1"), OK]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        began = time.monotonic()
        answer = await kube.request("POST", "/x", body=b"{}")

    assert answer == b"{}"
    assert time.monotonic() - began >= 1.0


async def test_rejected_request_is_not_sent_again_without_permission(scripted: ScriptedServer):
    scripted.script = [busy("1"), OK]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        lease = Permits(1)
        with pytest.raises(NotPermitted):
            await kube.permitted_by(lease).request("POST", "/x", body=b"{}")

    assert len(scripted.requests) == 1


async def test_permission_is_asked_after_the_wait_for_a_slot(scripted: ScriptedServer):
    scripted.script = [busy("1"), OK]
    async with KubeClient.connect(str(scripted.kubeconfig), connections=1) as kube:
        lease = Permits(1)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(kube.request("POST", "/x", body=b"{}"))
            await asyncio.sleep(0)
            group.create_task(refused(kube.permitted_by(lease)))
            lease.left = 0

    assert first.result() == b"{}"
    assert len(scripted.requests) == 2


async def refused(kube: KubeClient) -> None:
    """A request that its permission ends."""
    with pytest.raises(NotPermitted):
        await kube.request("POST", "/y", body=b"{}")


async def test_long_delay_is_left_to_the_caller(scripted: ScriptedServer):
    scripted.script = [busy("30")]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        with pytest.raises(TooManyRequests) as raised:
            await kube.request("POST", "/x", body=b"{}")

    assert raised.value.retry_after_seconds == 30.0


async def test_unavailable_server_can_ask_for_a_delay(scripted: ScriptedServer):
    scripted.script = [b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        with pytest.raises(Unavailable) as raised:
            await kube.request("GET", "/x")

    assert raised.value.retry_after_seconds == 5.0


async def test_write_without_an_answer_is_not_repeated(scripted: ScriptedServer):
    scripted.script = [b"", OK]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        with pytest.raises(Unanswered, match="POST /x"):
            await kube.request("POST", "/x", body=b"{}")

    assert len(scripted.requests) == 1


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b""])
async def test_success_without_an_object_is_unreadable(scripted: ScriptedServer, body: bytes):
    scripted.script = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        with pytest.raises(Unreadable):
            await kube.list_page(NAMESPACES)


async def test_bytes_that_are_not_utf_8_are_replaced_as_in_go(scripted: ScriptedServer):
    scripted.script = [b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a":"\xff"}']
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        assert await kube.list_page(NAMESPACES) == {"a": "\ufffd"}


async def test_request_has_a_timeout(scripted: ScriptedServer):
    scripted.script = [b""]
    scripted.holds_on = True
    async with KubeClient.connect(str(scripted.kubeconfig), timeout_seconds=0.2) as kube:
        with pytest.raises(Unanswered, match=r"GET /x: no answer within 0\.2 s"):
            await kube.request("GET", "/x")


async def test_requests_go_through_a_proxy(scripted: ScriptedServer):
    scripted.kubeconfig.write_bytes(kubeconfig_bytes({"server": "http://cluster.invalid", "proxy-url": scripted.url}, {"token": "t"}))
    scripted.script = [OK, busy("30")]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        assert await kube.request("PUT", "/x", body=b"{}") == b"{}"
        with pytest.raises(TooManyRequests):
            await kube.request("GET", "/x")

    head = scripted.requests[0]
    assert head.startswith(b"PUT http://cluster.invalid/x HTTP/1.1\r\nHost: cluster.invalid\r\n")
    assert b"Authorization: Bearer t\r\n" in head


async def test_lines_are_split_and_joined_across_chunks(scripted: ScriptedServer):
    pieces = [b"fi", b"rst\nsec", b"ond\nthird\n", b"\n", b"last\n"]
    scripted.script = [CHUNKED + b"".join(map(chunk, pieces)) + b"0\r\n\r\n"]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube, aclosing(kube.watch_lines("/x")) as lines:
        seen = [line async for together in lines for line in together]

    assert seen == [b"first", b"second", b"third", b"", b"last"]


async def test_lines_that_arrive_together_are_handed_over_together(scripted: ScriptedServer):
    scripted.script = [CHUNKED + chunk(b"first\nsecond\nthi") + chunk(b"rd\n") + b"0\r\n\r\n"]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube, aclosing(kube.watch_lines("/x")) as lines:
        assert (await anext(lines))[:2] == [b"first", b"second"]


@pytest.mark.parametrize("end", [b"", chunk(b"half a line"), b"0\r\n\r\n".join([chunk(b"half a line"), b""])])
async def test_broken_stream_is_told_from_one_that_ended(scripted: ScriptedServer, end: bytes):
    scripted.script = [CHUNKED + chunk(b"whole\n") + end]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube, aclosing(kube.watch_lines("/x")) as lines:
        assert await anext(lines) == [b"whole"]
        with pytest.raises(Unanswered):
            await anext(lines)


async def test_requests_on_behalf_of_a_user_name_that_user_and_no_others_do(scripted: ScriptedServer):
    scripted.script = [OK, OK, OK]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        jane = kube.acting_as("jane")
        await jane.request("GET", "/x")
        await jane.permitted_by(always).request("GET", "/x")
        await kube.request("GET", "/x")

    named = [b"Impersonate-User: jane\r\n" in head for head in scripted.requests]
    assert named == [True, True, False]


async def test_requests_name_the_client_and_ask_for_plain_json(scripted: ScriptedServer):
    scripted.script = [OK]
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        await kube.request("GET", "/x", params={"labelSelector": "a in (b,c)"})

    head = scripted.requests[0]
    assert head.startswith(b"GET /x?labelSelector=a+in+%28b%2Cc%29 HTTP/1.1\r\n")
    assert b"Accept: application/json\r\n" in head
    assert b"User-Agent: metaloop/" in head
    assert b"Accept-Encoding" not in head
