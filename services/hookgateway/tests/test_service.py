"""The gateway as a process that is called over HTTP and stopped by a signal."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from process import GatewayProcess, LeasedBody, gateway_process
from webserver import Request, ServerConnection, answers, never_answers, response, serving

from metaloop.common.faults import Fault
from metaloop.common.hooks.call import PATH, TARGET_HEADER, VERDICT_HEADER, Accepted, Rejected
from metaloop.devkit.certs import Authority
from metaloop.devkit.ports import free_port
from metaloop.hookgateway.exchange import SENT_AT_ONCE_BYTES

pytestmark = pytest.mark.asyncio(loop_scope="module")

OK = Accepted(body=b"{}")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[GatewayProcess]:
    """A gateway for all tests that neither stop it nor set anything."""
    async with gateway_process() as gateway:
        yield gateway


async def test_call_is_answered_with_the_webhooks_bytes_and_a_verdict(gateway: GatewayProcess):
    async with serving(answers(200, b'{"a": 1.0}')) as hook:
        response = await gateway.post(hook.url(), body=b'{"parent": {}}')

    assert (response.status_code, response.headers[VERDICT_HEADER], response.content) == (200, "accepted", b'{"a": 1.0}')
    assert hook.requests[0].body == b'{"parent": {}}'


@pytest.mark.parametrize("size", [SENT_AT_ONCE_BYTES, SENT_AT_ONCE_BYTES + 1, 5 * SENT_AT_ONCE_BYTES])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_request_of_any_size_reaches_the_webhook_whole_and_with_its_length(gateway: GatewayProcess, *, size: int, is_chunked: bool):
    body = bytes(range(33, 127)) * (size // 94) + b"x" * (size % 94)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, size, 100_000):
            yield body[start : start + 100_000]

    async with serving(answers(200, b"{}")) as hook:
        response = await gateway.post(hook.url(), body=chunks() if is_chunked else body)

    assert response.status_code == 200
    assert hook.requests[0].body == body
    assert hook.requests[0].headers["content-length"] == str(size)
    assert "transfer-encoding" not in hook.requests[0].headers


async def test_malformed_call_is_answered_by_an_http_status():
    async with gateway_process(gateway_token="letmein", max_request_bytes="100") as gateway:
        wrong = [
            await gateway.post("http://hooks/"),
            await gateway.post("http://hooks/", Authorization="Bearer letmeout"),
            await gateway.client.post(PATH, headers={"Authorization": "Bearer letmein"}),
            await gateway.client.post(PATH, headers={"Authorization": "Bearer letmein", TARGET_HEADER: "{"}),
            await gateway.post("http://hooks/", body=b"x" * 101, Authorization="Bearer letmein"),
        ]
        by_method = await gateway.client.get(PATH)

    assert [response.status_code for response in wrong] == [401, 401, 422, 422, 413]
    assert by_method.status_code == 405


async def test_spec_that_can_not_be_called_is_rejected(gateway: GatewayProcess):
    verdict = await gateway.call("file:///etc/passwd")

    assert verdict == Rejected(fault=Fault.ENDPOINT_INVALID, message="hooks.sync: webhook.url: must be an http or https URL, not file")


async def test_reconcilers_with_the_token_are_served():
    async with serving(answers(200)) as hook, gateway_process(gateway_token="letmein") as gateway:
        gateway.headers["Authorization"] = "Bearer letmein"

        assert await gateway.call(hook.url()) == OK
    assert "authorization" not in hook.requests[0].headers


async def test_two_tokens_are_accepted_while_one_replaces_the_other():
    async with serving(answers(200)) as hook, gateway_process(gateway_token="letmein", gateway_other_token="former") as gateway:
        for token in ("letmein", "former"):
            gateway.headers["Authorization"] = f"Bearer {token}"
            assert await gateway.call(hook.url()) == OK

        wrong = await gateway.post("http://hooks/", Authorization="Bearer neither")

    assert wrong.status_code == 401


async def test_target_may_hold_long_inline_certificates(gateway: GatewayProcess):
    bundle = Authority("ours").certificate_pem.decode() * 150
    async with serving(answers(200)) as hook:
        assert len(bundle) > 64 * 1024
        assert await gateway.call({"url": hook.url(), "caBundle": {"inline": bundle}}) == OK


async def test_call_ends_at_once_when_its_caller_disconnects(gateway: GatewayProcess):
    """A killed reconciler loses its lease, and the next one may call the same hook: never two calls for one parent."""
    async with serving(never_answers) as hook:
        caller = asyncio.create_task(gateway.post({"url": hook.url(), "timeout": "300s"}))
        await hook.until(lambda it: it.in_flight == 1)

        caller.cancel()

        await hook.until(lambda it: it.open_connections == 0)


async def test_call_ends_with_a_lease_that_is_not_renewed(gateway: GatewayProcess):
    """A stopped reconciler keeps its connection, and can't end its call."""
    async with serving(never_answers) as hook:
        with gateway.peer() as peer:
            answer = await gateway.ask_leased(peer, hook.url(), LeasedBody(b"{}", seconds=0.3))
        await hook.until(lambda it: it.open_connections == 0)

    assert (answer.status, answer.body) == (408, b"ended: the caller did not renew its lease")
    assert len(hook.requests) == 1


async def test_call_goes_on_while_its_lease_is_renewed(gateway: GatewayProcess):
    goes_on = asyncio.Event()

    async def answer(_: Request, connection: ServerConnection) -> None:
        await goes_on.wait()
        await connection.send(response(200, b'{"a": 1}'))

    async with serving(answer) as hook:
        with gateway.peer() as peer:
            body = LeasedBody(b'{"parent": {}}', seconds=1.5)
            asking = asyncio.ensure_future(gateway.ask_leased(peer, hook.url(), body))
            await hook.until(lambda it: it.in_flight == 1)
            body.renew(300)
            await asyncio.sleep(2)
            goes_on.set()
            answered = await asking

    assert (answered.status, answered.header(VERDICT_HEADER), answered.body) == (200, "accepted", b'{"a": 1}')
    assert hook.requests[0].body == b'{"parent": {}}'


async def test_one_connection_serves_leased_calls_one_after_another(gateway: GatewayProcess):
    async with serving(answers(200)) as hook:
        with gateway.peer() as peer:
            statuses = [(await gateway.ask_leased(peer, hook.url(), LeasedBody(b"{}", seconds=5))).status for _ in range(3)]
            kept = peer.kept

    assert (statuses, kept) == ([200, 200, 200], 1)


async def test_caller_that_disconnects_while_sending_leaves_nothing_behind():
    async with serving(answers(200)) as hook, gateway_process() as gateway:
        _, writer = await asyncio.open_connection("localhost", gateway.client.base_url.port)
        writer.write(b"POST /v1/call HTTP/1.1\r\nHost: gateway\r\nContent-Length: 1000\r\n\r\nhalf")
        await writer.drain()
        writer.close()

        assert await gateway.call(hook.url()) == OK
        assert await gateway.stopped() == 0


async def test_draining_finishes_calls_in_flight_and_refuses_new_ones():
    goes_on = asyncio.Event()

    async def waits(request: Request, connection: ServerConnection) -> None:
        if request.path != "/other":
            await goes_on.wait()
        await connection.send(response(200))

    async with serving(waits) as hook, gateway_process() as gateway:
        in_flight = asyncio.create_task(gateway.call(hook.url()))
        await hook.until(lambda it: it.in_flight == 1)
        ending = asyncio.create_task(gateway.stopped())
        async with asyncio.timeout(30):
            while (refused := await gateway.post(hook.url("/other"))).status_code != 503:
                pass
        goes_on.set()

        assert refused.text == "draining: call another gateway"
        assert await in_flight == OK
        assert await ending == 0


async def test_call_that_outlasts_draining_is_ended_with_503():
    async with serving(never_answers) as hook, gateway_process(drain_seconds="0.5") as gateway:
        in_flight = asyncio.create_task(gateway.post(hook.url()))
        await hook.until(lambda it: it.in_flight == 1)

        assert await gateway.stopped() == 0

        response = await in_flight
        assert (response.status_code, response.text) == (503, "ended: this gateway goes away")
        await hook.until(lambda it: it.open_connections == 0)
        assert "Traceback" not in gateway.log


async def test_two_processes_share_a_port():
    port = free_port()
    async with (
        serving(answers(200)) as hook,
        gateway_process(port, reuse_port="true") as one,
        gateway_process(port, reuse_port="true") as other,
    ):
        assert await one.call(hook.url()) == OK
        assert await one.stopped() == 0

        async with httpx.AsyncClient(base_url=one.client.base_url, trust_env=False) as fresh:
            other.client = fresh
            assert await other.call(hook.url()) == OK


async def test_second_process_on_a_port_that_is_not_shared_fails():
    port = free_port()
    async with gateway_process(port) as first:
        with pytest.raises(AssertionError, match="ended with status 1"):
            async with gateway_process(port):
                pass

        assert (await first.client.get("/readyz")).is_success


async def test_mutual_tls_admits_only_reconcilers_with_a_certificate():
    ours, theirs = Authority("ours"), Authority("theirs")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours.serving("gateway", hosts=["localhost"]).write(folder / "server")
        (folder / "ca.crt").write_bytes(ours.certificate_pem)
        settings = {
            "gateway_tls_cert_file": str(folder / "server.crt"),
            "gateway_tls_key_file": str(folder / "server.key"),
            "gateway_client_ca_file": str(folder / "ca.crt"),
        }
        with_certificate = _client(folder, trusts=ours, signed_by=ours)
        async with serving(answers(200)) as hook, gateway_process(free_port(), tls=with_certificate, **settings) as gateway:
            assert await gateway.call(hook.url()) == OK

            for stranger in (_client(folder, trusts=ours), _client(folder, trusts=ours, signed_by=theirs)):
                async with stranger:
                    with pytest.raises(httpx.TransportError):
                        await stranger.get(f"{gateway.client.base_url}/readyz")


def _client(folder: Path, *, trusts: Authority, signed_by: Authority | None = None) -> httpx.AsyncClient:
    context = ssl.create_default_context(cadata=trusts.certificate_pem.decode())
    if signed_by is not None:
        signed_by.client("reconciler").write(folder / "client")
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    return httpx.AsyncClient(verify=context, trust_env=False)


async def test_ignored_timeout_is_logged_once():
    async with serving(answers(200)) as hook, gateway_process() as gateway:
        for _ in range(3):
            await gateway.call({"url": hook.url(), "timeout": "0s"})

        assert gateway.log.count("hook.timeout_ignored") == 1
