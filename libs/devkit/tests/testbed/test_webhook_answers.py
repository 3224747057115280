"""The webhook of the testbed: what it answers, whom it turns away, and what it records of each call."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, dumps
from metaloop.devkit.certs import Authority
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.testbed.webhook import Answer, Reply, Webhook

COMPOSITE: JsonObject = {"parent": {"metadata": {"name": "p", "uid": "1"}}}
DECORATOR: JsonObject = {"object": {"metadata": {"name": "d", "uid": "2"}}}


@pytest_asyncio.fixture
async def webhook() -> AsyncIterator[Webhook]:
    async with Webhook.serve() as webhook:
        yield webhook


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(session: aiohttp.ClientSession, url: str, request: JsonObject = COMPOSITE, **headers: str) -> Reply:
    """The answer to a call."""
    async with session.post(url, data=dumps(request), headers=headers) as answer:
        return Reply(body=await answer.read(), status=answer.status, headers=answer.headers)


async def test_unknown_hook_is_not_found_and_not_recorded(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    assert (await post(session, webhook.url("h"))).status == 404
    assert webhook.calls("h") == []


async def test_object_is_answered_as_json(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    answer = await post(session, webhook.on("h", lambda request: {"seen": request}))

    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.body == dumps({"seen": COMPOSITE})


async def test_reply_is_answered_as_it_is(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    url = webhook.on("h", lambda _: Reply(body=b"<html>", status=503, headers={"Retry-After": "7"}))

    answer = await post(session, url)

    assert (answer.status, answer.body, answer.headers["Retry-After"]) == (503, b"<html>", "7")


async def test_behaviour_may_be_asynchronous(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    async def behave(_: JsonObject) -> Answer:
        await asyncio.sleep(0)
        return {"done": True}

    assert (await post(session, webhook.on("h", behave))).body == b'{"done":true}'


async def test_behaviour_can_be_replaced_at_the_same_url(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    before = webhook.on("h", lambda _: {"version": 1})
    after = webhook.on("h", lambda _: {"version": 2})

    assert before == after
    assert (await post(session, before)).body == b'{"version":2}'


async def test_behaviour_that_fails_is_a_server_error(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    def behave(_: JsonObject) -> Answer:
        raise LookupError("no such child")

    answer = await post(session, webhook.on("h", behave))

    [call] = webhook.calls("h")
    assert answer.status == 500
    assert not call.answered
    assert call.ended_at is not None


@pytest.mark.parametrize(
    ("request_", "name"), [(COMPOSITE, "p"), (DECORATOR, "d"), ({}, "")], ids=["a composite", "a decorator", "neither"]
)
async def test_call_knows_the_parent_of_either_controller(
    webhook: Webhook, session: aiohttp.ClientSession, request_: JsonObject, name: str
) -> None:
    await post(session, webhook.on("h", lambda _: {}), request_)

    assert [call.parent_name for call in webhook.calls("h")] == [name]


async def test_calls_are_recorded_in_order_with_their_times_and_headers(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    url = webhook.on("h", lambda _: {})
    await post(session, url, COMPOSITE, traceparent="one")
    await post(session, url, DECORATOR, traceparent="two")

    first, second = webhook.calls("h")

    assert (first.headers["traceparent"], second.headers["traceparent"]) == ("one", "two")
    assert (first.request, second.request) == (COMPOSITE, DECORATOR)
    assert first.ended_at is not None
    assert first.started_at <= first.ended_at <= second.started_at


async def test_calls_on_one_kept_alive_connection_have_one_port(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    url = webhook.on("h", lambda _: {})
    await post(session, url)
    await post(session, url)
    async with aiohttp.ClientSession() as another:
        await post(another, url)

    first, second, third = (call.port for call in webhook.calls("h"))

    assert first == second != third


async def test_calls_are_counted_by_hook_and_parent(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    await post(session, webhook.on("sync", lambda _: {}), COMPOSITE)
    await post(session, webhook.on("sync", lambda _: {}), DECORATOR)
    await post(session, webhook.on("finalize", lambda _: {}), COMPOSITE)

    await webhook.called(2, "sync")
    await webhook.called(1, "sync", parent="p")
    await webhook.no_more_than(1, "finalize")()
    with pytest.raises(AssertionError, match="called 1 times, not yet 2"):
        await webhook.called(2, "sync", parent="p")
    with pytest.raises(AssertionError, match="called 2 times, more than 1"):
        await webhook.no_more_than(1, "sync")()


@pytest.mark.parametrize(
    ("headers", "status"), [({"Authorization": "Bearer good"}, 200), ({"Authorization": "Bearer bad"}, 401), ({}, 401)]
)
async def test_call_without_an_accepted_token_is_turned_away(
    webhook: Webhook, session: aiohttp.ClientSession, headers: dict[str, str], status: int
) -> None:
    url = webhook.on("h", lambda _: {})
    webhook.tokens = frozenset({"good", "also good"})

    answer = await post(session, url, COMPOSITE, **headers)

    turned_away = int(status == 401)
    assert (answer.status, webhook.turned_away, len(webhook.calls("h"))) == (status, turned_away, 1 - turned_away)


async def test_concurrent_calls_for_two_keys_of_a_map_are_no_overlap(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    arrivals = asyncio.Barrier(2)

    async def behave(_: JsonObject) -> Answer:
        await arrivals.wait()
        return {}

    url = webhook.on("h", behave)

    await asyncio.gather(*(post(session, url, {**COMPOSITE, "mapKey": key}) for key in ("a", "b")))

    assert webhook.overlaps == []


async def test_overlap_names_the_hook_and_the_parent(webhook: Webhook, session: aiohttp.ClientSession) -> None:
    arrivals = asyncio.Barrier(2)

    async def behave(_: JsonObject) -> Answer:
        await arrivals.wait()
        return {}

    url = webhook.on("h", behave)

    await asyncio.gather(post(session, url), post(session, url))

    [overlap] = webhook.overlaps
    assert str(overlap).startswith("h: a second call for p began ")
    assert overlap.earlier.started_at <= overlap.later.started_at


async def test_caller_is_named_by_its_client_certificate(tmp_path: Path) -> None:
    authority = Authority("ca")
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    authority.serving("webhook", hosts=[LOOPBACK]).write(tmp_path / "server")
    authority.client("gateway").write(tmp_path / "client")
    server, client = (
        ssl.create_default_context(purpose, cafile=tmp_path / "ca.crt") for purpose in (ssl.Purpose.CLIENT_AUTH, ssl.Purpose.SERVER_AUTH)
    )
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    client.load_cert_chain(tmp_path / "client.crt", tmp_path / "client.key")

    async with Webhook.serve(tls=server) as webhook, aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client)) as session:
        await post(session, webhook.on("h", lambda _: {}))

        assert webhook.url("h").startswith("https://")
        assert [call.client for call in webhook.calls("h")] == ["gateway"]
