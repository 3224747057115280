"""One request to one webhook over real connections."""

import asyncio
import gzip
import socket

import pytest
from in_process import running_gateway
from webserver import Request, Script, ServerConnection, answers, never_answers, response, sends, serving

from metaloop.common.faults import Fault
from metaloop.common.hooks.call import Accepted, Rejected, Throttled

MEGABYTE = 2**20


def reason(verdict: object) -> str:
    assert isinstance(verdict, Rejected), verdict
    return verdict.fault.wire


async def test_bytes_are_passed_through_unchanged_both_ways():
    async with serving(answers(200, b'{"b": 1,\n "a" :2.0}\xff')) as hook, running_gateway() as gateway:
        verdict = await gateway.call(hook.url("/a%2Fb?x=a+b"), body=b'{ "parent":\xff }')

    assert verdict == Accepted(body=b'{"b": 1,\n "a" :2.0}\xff')
    [request] = hook.requests
    assert (request.method, request.path, request.body) == ("POST", "/a%2Fb?x=a+b", b'{ "parent":\xff }')


async def test_request_has_a_fixed_set_of_headers():
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())

    headers = hook.requests[0].headers
    assert headers["content-type"] == "application/json"
    assert headers["accept-encoding"] == "gzip, deflate"
    assert headers["user-agent"] == "metaloop-hookgateway"
    assert set(headers) == {"host", "content-type", "content-length", "accept-encoding", "user-agent", "accept"}


async def test_trace_context_reaches_the_webhook():
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        await gateway.call(hook.url(), traceparent=traceparent)

    assert hook.requests[0].headers["traceparent"] == traceparent


async def test_connection_is_reused():
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        for _ in range(5):
            await gateway.call(hook.url())

    assert (len(hook.requests), hook.connections) == (5, 1)


@pytest.mark.parametrize("size", [0, 1, MEGABYTE, 5 * MEGABYTE])
async def test_request_of_any_size_arrives_complete(size: int):
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        verdict = await gateway.call(hook.url(), body=b"x" * size)

    assert verdict == Accepted(body=b"{}")
    assert len(hook.requests[0].body) == size


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "script",
    [
        answers(200, b"{}"),
        answers(200, b"{}", content_type="text/plain"),
        answers(200, gzip.compress(b"{}"), content_encoding="gzip"),
        sends(CHUNKED, b"1\r\n{\r\n", b"1\r\n}\r\n", b"0\r\n\r\n"),
        sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"{", b"}"),
        sends(b"HTTP/1.1 200 OK\r\n\r\n{}", then_closes=True),
        sends(b"HTTP/1.0 200 OK\r\n\r\n{}", then_closes=True),
        sends(b"HTTP/1.1 100 Continue\r\n\r\n", response(200, b"{}")),
        sends(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", response(200, b"{}")),
        sends(b"HTTP/1.1 102 Processing\r\n\r\n" * 20, response(200, b"{}")),
    ],
    ids=["plain", "other content type", "gzip", "chunked", "in parts", "until close", "http/1.0", "100", "103", "many 102"],
)
async def test_answer_in_any_form_of_http_is_accepted(script: Script):
    async with serving(script) as hook, running_gateway() as gateway:
        assert await gateway.call(hook.url()) == Accepted(body=b"{}")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (answers(204, b""), "StatusUnexpected"),
        (answers(302, b"", location="http://localhost/"), "StatusUnexpected"),
        (answers(500, b"no"), "StatusUnexpected"),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}", then_closes=True), "ConnectionLost"),
        (sends(CHUNKED, b"1\r\n{\r\n", then_closes=True), "ConnectionLost"),
        (sends(CHUNKED, b"zz\r\n{\r\n"), "ConnectionLost"),
        (sends(b"", then_closes=True), "ConnectionLost"),
        (sends(b"HTTP/1.1 200", then_closes=True), "ConnectionLost"),
        (sends(b"SSH-2.0-OpenSSH_9.2\r\n", then_closes=True), "ConnectionLost"),
        (sends(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", then_closes=True), "ConnectionLost"),
        (sends(b"HTTP/1.1 200 OK\r\nX-Large: " + b"x" * 100_000 + b"\r\n\r\n"), "ConnectionLost"),
        (sends(b"HTTP/1.1 200 OK\r\n" + b"X-Many: x\r\n" * 10_000 + b"\r\n"), "ConnectionLost"),
        (sends(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), "ConnectionLost"),
        (answers(200, b"{}", content_encoding="br"), "BodyUndecodable"),
        (answers(200, b"{}", content_encoding="gzip"), "BodyUndecodable"),
    ],
    ids=[
        "204", "302", "500", "early close", "early close in chunks", "bad chunk", "nothing", "half a line", "ssh", "tls", "large header",
        "many headers", "two lengths", "unknown coding", "wrong coding",
    ],
)  # fmt: skip
async def test_any_other_answer_is_rejected_with_its_fault(script: Script, why: str):
    async with serving(script) as hook, running_gateway() as gateway:
        verdict = await gateway.call(hook.url())

    assert reason(verdict) == why
    assert isinstance(verdict, Rejected)
    assert verdict.fault.result == "retry"


async def test_redirect_is_not_followed():
    async with serving(answers(200)) as other, serving(answers(307, b"", location=other.url())) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())

    assert other.requests == []


async def test_cookie_is_not_sent_with_the_next_call():
    async with serving(answers(200, b"{}", set_cookie="session=1")) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())
        await gateway.call(hook.url())

    assert "cookie" not in hook.requests[1].headers


@pytest.mark.parametrize(("retry_after", "seconds"), [({"retry_after": "3"}, 3.0), ({"retry_after": " 3 "}, 3.0), ({}, None)])
async def test_429_is_throttled(retry_after: dict[str, str], seconds: float | None):
    async with serving(answers(429, b"", **retry_after)) as hook, running_gateway() as gateway:
        assert await gateway.call(hook.url()) == Throttled(after_seconds=seconds, message="webhook answered 429 with no body")


async def trickles(_: Request, connection: ServerConnection) -> None:
    """Sends a byte now and then, and never finishes."""
    await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        await connection.send(b" ")
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("script", [never_answers, trickles], ids=["silent", "trickling"])
async def test_webhook_that_does_not_finish_is_cut_off_at_its_timeout(script: Script):
    async with serving(script) as hook, running_gateway() as gateway:
        verdict = await gateway.call({"url": hook.url(), "timeout": "1s"})
        await hook.until(lambda it: it.open_connections == 0)

    assert verdict == Rejected(fault=Fault.TIMED_OUT, message=f"localhost:{hook.port} did not finish its answer within 1 s")


async def test_connecting_counts_towards_the_timeout():
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):  # fills the backlog
            async with running_gateway() as gateway:
                verdict = await gateway.call({"url": f"http://127.0.0.1:{port}/", "timeout": "200ms"})

    assert reason(verdict) in {"TimedOut", "ConnectFailed"}


async def test_refused_connection_is_rejected_with_its_address():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with running_gateway() as gateway:
        verdict = await gateway.call(f"http://127.0.0.1:{port}/sync?token=hunter2")

    assert isinstance(verdict, Rejected)
    assert verdict.fault is Fault.CONNECT_FAILED
    assert f"127.0.0.1:{port}" in verdict.message
    assert "hunter2" not in verdict.message


async def test_unresolvable_name_is_rejected_with_its_name():
    async with running_gateway() as gateway:
        verdict = await gateway.call("http://no-such-service.invalid/")

    assert isinstance(verdict, Rejected)
    assert verdict.fault is Fault.CONNECT_FAILED
    assert "no-such-service.invalid:80" in verdict.message


async def test_cancelled_call_closes_its_connection_at_once():
    async with serving(never_answers) as hook, running_gateway() as gateway:
        call = asyncio.create_task(gateway.call(hook.url()))
        await hook.until(lambda it: it.in_flight == 1)

        call.cancel()

        await hook.until(lambda it: it.open_connections == 0)


@pytest.mark.parametrize("announced", [True, False])
async def test_answer_above_the_limit_is_refused(*, announced: bool):
    body = b"x" * 2000
    script = answers(200, body) if announced else sends(CHUNKED, b"7d0\r\n" + body + b"\r\n0\r\n\r\n")
    async with serving(script) as hook, running_gateway(max_response_bytes=1999) as gateway:
        assert reason(await gateway.call(hook.url())) == "BodyTooLarge"


async def test_answer_announced_as_too_large_is_not_read():
    async with serving(sends(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")) as hook, running_gateway() as gateway:
        assert reason(await gateway.call(hook.url())) == "BodyTooLarge"
        await hook.until(lambda it: it.open_connections == 0)


async def floods(_: Request, connection: ServerConnection) -> None:
    """Sends for ever."""
    await connection.send(CHUNKED)
    while True:
        await connection.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")


async def test_endless_answer_is_cut_off_at_the_limit():
    async with serving(floods) as hook, running_gateway(max_response_bytes=MEGABYTE) as gateway:
        assert reason(await gateway.call(hook.url())) == "BodyTooLarge"
        await hook.until(lambda it: it.open_connections == 0)


async def floods_with_an_error(_: Request, connection: ServerConnection) -> None:
    """Sends an error for ever."""
    await connection.send(CHUNKED.replace(b"200 OK", b"500 Oh No"))
    while True:
        await connection.send(b"10000\r\n" + b"x" * 65536 + b"\r\n")


async def test_only_the_beginning_of_an_endless_error_is_read():
    async with serving(floods_with_an_error) as hook, running_gateway() as gateway:
        assert reason(await gateway.call(hook.url())) == "StatusUnexpected"
        await hook.until(lambda it: it.open_connections == 0)


async def test_decompression_bomb_is_refused():
    bomb = gzip.compress(b"\0" * 30 * MEGABYTE)
    async with serving(answers(200, bomb, content_encoding="gzip")) as hook, running_gateway(max_response_bytes=16 * MEGABYTE) as gateway:
        assert reason(await gateway.call(hook.url())) == "BodyTooLarge"


async def test_answers_that_do_not_fit_into_memory_together_are_refused():
    async with serving(answers(200, b"x" * MEGABYTE)) as hook, running_gateway(max_unfinished_bytes=MEGABYTE // 2) as gateway:
        assert reason(await gateway.call(hook.url())) == "Overloaded"


async def test_memory_is_released_after_a_refused_answer():
    async with serving(answers(200, b"x" * 2000)) as hook, running_gateway(max_response_bytes=1000, max_unfinished_bytes=2500) as gateway:
        for _ in range(5):
            assert reason(await gateway.call(hook.url())) == "BodyTooLarge"


async def test_connection_that_was_closed_while_idle_is_replaced():
    """As when the webhook's pod is replaced."""
    last: list[ServerConnection] = []

    async def closes_afterwards(_: Request, connection: ServerConnection) -> None:
        await connection.send(response(200))
        last.append(connection)

    async with serving(closes_afterwards) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())
        last[0].close()

        assert await gateway.call(hook.url()) == Accepted(body=b"{}")
        assert hook.connections == 2


async def test_request_on_a_dying_connection_is_sent_once_more():
    seen: list[Request] = []

    async def dies_on_the_second_request(request: Request, connection: ServerConnection) -> None:
        seen.append(request)
        if len(seen) == 2:
            connection.close()
        else:
            await connection.send(response(200))

    async with serving(dies_on_the_second_request) as hook, running_gateway() as gateway:
        await gateway.call(hook.url(), body=b"first")

        assert await gateway.call(hook.url(), body=b"second") == Accepted(body=b"{}")
    assert [request.body for request in hook.requests] == [b"first", b"second", b"second"]


async def test_request_that_failed_on_a_new_connection_is_not_sent_again():
    async with serving(sends(b"", then_closes=True)) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())

    assert len(hook.requests) == 1


async def test_request_that_was_half_answered_is_not_sent_again():
    seen: list[Request] = []

    async def half_answers_the_second(request: Request, connection: ServerConnection) -> None:
        seen.append(request)
        await connection.send(response(200)[: None if len(seen) == 1 else -1])
        if len(seen) == 2:
            connection.close()

    async with serving(half_answers_the_second) as hook, running_gateway() as gateway:
        await gateway.call(hook.url())
        assert reason(await gateway.call(hook.url())) == "ConnectionLost"

    assert len(hook.requests) == 2


async def test_webhook_on_ipv6_is_reached():
    async with serving(answers(200), host="::1") as hook, running_gateway() as gateway:
        assert await gateway.call(f"http://[::1]:{hook.port}/") == Accepted(body=b"{}")


async def test_name_with_two_addresses_is_reached_at_the_one_that_answers():
    """`localhost` is ::1 and 127.0.0.1."""
    async with serving(answers(200), host="127.0.0.1") as hook, running_gateway() as gateway:
        assert await gateway.call(hook.url()) == Accepted(body=b"{}")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]"])
async def test_denied_address_is_not_connected_to_in_any_notation(host: str):
    async with serving(answers(200)) as hook, running_gateway(denied_cidrs="127.0.0.0/8,::1/128") as gateway:
        assert reason(await gateway.call(f"http://{host}:{hook.port}/")) == "AddressDenied"

    assert hook.connections == 0


async def test_metadata_service_is_denied_by_default():
    async with running_gateway() as gateway:
        assert reason(await gateway.call("http://169.254.169.254/latest/meta-data/")) == "AddressDenied"


async def test_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch):
    async with serving(answers(200, b"proxy")) as proxy, serving(answers(200, b"hook")) as hook:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        async with running_gateway() as gateway:
            assert await gateway.call(f"http://127.0.0.1:{hook.port}/") == Accepted(body=b"hook")


async def test_proxy_of_the_environment_is_used_if_enabled(monkeypatch: pytest.MonkeyPatch):
    async with serving(answers(200, b"proxy")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        async with running_gateway(proxy_from_environment=True) as gateway:
            assert await gateway.call("http://hooks.prod/sync") == Accepted(body=b"proxy")

    assert proxy.requests[0].path == "http://hooks.prod/sync"
