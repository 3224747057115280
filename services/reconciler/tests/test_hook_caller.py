"""Calls to the hook gateway over real HTTP: what it is sent, and what follows from its verdicts."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from builders import PARENT_UID, THINGS, a_controller, a_parent, observed_with
from fake_hooks import FakeLease, OpenSlot
from gateway_server import GatewayServer, serving

from metaloop.common.api import composite
from metaloop.common.api.composite import child_selector, parse_composite
from metaloop.common.errors import InvalidAnswer, InvalidSpec, LeaseLost, MetaloopError, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.hooks import call
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects import unstructured
from metaloop.common.testing.polling import eventually
from metaloop.devkit.certs import Authority
from metaloop.reconciler.app import gateway_of
from metaloop.reconciler.concurrency import ConcurrencyLimiter
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.hooks.request import sync_request
from metaloop.reconciler.core.model import Answer, Observed, RequestObjects
from metaloop.reconciler.core.parent.finalizer import hook_to_call
from metaloop.reconciler.core.rollout.revisions import Revision, without_history
from metaloop.reconciler.errors import GatewayTimedOut, HookFailed, HookThrottled
from metaloop.reconciler.hook_caller import HookCaller
from metaloop.reconciler.ports import Slot
from metaloop.reconciler.settings import Settings


@pytest_asyncio.fixture
async def gateway() -> AsyncIterator[GatewayServer]:
    async with serving(GatewayServer()) as gateway:
        yield gateway


@pytest_asyncio.fixture
async def hooks(gateway: GatewayServer) -> AsyncIterator[HookCaller]:
    async with gateway_of(Settings(gateway_url=gateway.url)) as peer:
        yield HookCaller(peer, token="open sesame")


def childless(controller: JsonObject) -> Observed:
    """A parent without children, of this controller."""
    parsed = parse_composite(controller)
    parent = a_parent()
    return observed_with(parsed, THINGS, parent, (), selector=child_selector(parsed, parent))


async def desired(hooks: HookCaller, controller: JsonObject | None = None) -> Answer:
    """The answer of a controller's hook."""
    seen = childless(controller or a_controller())
    [answer] = await asked(hooks, seen, without_history(seen).live, OpenSlot())
    return answer


async def asked(hooks: HookCaller, seen: Observed, live: Sequence[Revision], slot: Slot) -> list[Answer]:
    """The sync hook's answer for each of these revisions."""
    hook = hook_to_call(seen)
    bodies = {
        each.name: sync_request(seen.with_parent(each.parent), RequestObjects(children=(), related=()), hook=hook, keys=composite.KEYS)
        for each in live
    }
    answered = await hooks.call(seen, hook, bodies, slot=slot, lease=FakeLease())
    return [sync_answer(body, is_strict=hook.strict, keys=composite.KEYS) for body in answered]


async def test_call_says_whom_to_ask_and_for_whom(gateway: GatewayServer, hooks: HookCaller):
    await desired(hooks)

    [headers] = gateway.headers
    assert loads(headers[call.TARGET_HEADER]) == {
        "controller": {"kind": "CompositeController", "name": "things", "uid": "uid-of-controller"},
        "hook": "sync",
        "webhook": {"url": "http://hook.example/sync"},
        "endpointConfigs": [],
    }
    assert (headers[call.PARENT_HEADER], headers[call.REVISION_HEADER]) == (PARENT_UID, "")
    assert headers["Authorization"] == "Bearer open sesame"
    assert headers["Content-Type"] == "application/json"


async def test_body_is_the_webhooks_request(gateway: GatewayServer, hooks: HookCaller):
    await desired(hooks)

    [body] = gateway.bodies
    assert set(loads(body)) == {"controller", "parent", "children", "related", "finalizing"}


async def test_edited_controller_is_called_and_shown_as_edited(gateway: GatewayServer, hooks: HookCaller):
    await desired(hooks)
    edited = a_controller(webhook={"url": "http://hook.example/new"})
    edited["metadata"] = {"name": "things", "uid": "uid-of-controller", "resourceVersion": "8"}

    await desired(hooks, edited)

    assert loads(gateway.headers[1][call.TARGET_HEADER])["webhook"] == {"url": "http://hook.example/new"}
    assert loads(gateway.bodies[1])["controller"] == edited


@pytest.mark.parametrize("kind", [call.Accepted, call.NotModified])
async def test_answer_of_the_webhook_is_read(gateway: GatewayServer, hooks: HookCaller, kind: type[call.Accepted | call.NotModified]):
    gateway.verdict = kind(body=b'{"status": {"phase": "Ready"}}')

    assert (await desired(hooks)).status == {"phase": "Ready"}


@pytest.mark.parametrize(("version", "is_refused"), [("v1", False), ("v2", True)])
async def test_answer_is_read_as_strictly_as_the_controller_says(
    *, gateway: GatewayServer, hooks: HookCaller, version: str, is_refused: bool
):
    gateway.verdict = call.Accepted(body=b'{"children": [], "Status": {}}')

    if is_refused:
        with pytest.raises(InvalidAnswer):
            await desired(hooks, a_controller(version=version))
    else:
        assert (await desired(hooks, a_controller(version=version))).unknown_keys == ("Status",)


async def test_throttled_webhook_says_for_how_long_and_why(gateway: GatewayServer, hooks: HookCaller):
    gateway.verdict = call.Throttled(after_seconds=7.0, fault=Fault.CIRCUIT_OPEN, message="circuit open: it did not answer")

    with pytest.raises(HookThrottled, match="sync hook: circuit open: it did not answer") as caught:
        await desired(hooks)

    assert (caught.value.after_seconds, caught.value.fault) == (7.0, Fault.CIRCUIT_OPEN)


async def test_rejected_call_keeps_the_gateways_reason(gateway: GatewayServer, hooks: HookCaller):
    gateway.verdict = call.Rejected(fault=Fault.TIMED_OUT, message="no answer within 10 s")

    with pytest.raises(HookFailed, match="sync hook: no answer within 10 s") as caught:
        await desired(hooks)

    assert caught.value.fault is Fault.TIMED_OUT


@pytest.mark.parametrize(("status", "expected"), [(401, Unavailable), (422, InvalidSpec), (500, Unavailable), (503, Unavailable)])
async def test_gateways_own_refusals(gateway: GatewayServer, hooks: HookCaller, status: int, expected: type[MetaloopError]):
    gateway.status = status

    with pytest.raises(expected, match="go away"):
        await desired(hooks)


async def test_broken_connection_is_an_outage(gateway: GatewayServer, hooks: HookCaller):
    gateway.breaks_off = True

    with pytest.raises(Unavailable, match="can't be reached"):
        await desired(hooks)


async def test_gateway_that_hangs_is_given_up_after_the_webhooks_timeout(gateway: GatewayServer):
    gateway.hangs = True
    controller = a_controller(webhook={"url": "http://hook.example/sync", "timeout": "100ms"})

    async with gateway_of(Settings(gateway_url=gateway.url)) as peer:
        with pytest.raises(GatewayTimedOut, match=r"no verdict on the sync hook within 0\.2 s"):
            await desired(HookCaller(peer, token="", slack_seconds=0.1), controller)


@pytest.mark.parametrize("text", ["0s", "-1s", "soon"])
async def test_timeout_that_the_gateway_does_not_use_does_not_end_the_call(gateway: GatewayServer, text: str):
    controller = a_controller(webhook={"url": "http://hook.example/sync", "timeout": text})

    async with gateway_of(Settings(gateway_url=gateway.url)) as peer:
        await desired(HookCaller(peer, token="", slack_seconds=0.0), controller)

    assert len(gateway.bodies) == 1


async def test_lost_lease_calls_no_webhook(gateway: GatewayServer, hooks: HookCaller):
    seen = childless(a_controller())

    with pytest.raises(LeaseLost):
        await hooks.call(seen, hook_to_call(seen), {"": b"{}"}, slot=OpenSlot(), lease=FakeLease(requests_left=0))

    assert gateway.bodies == []


async def test_call_says_how_long_its_lease_lasts_and_each_extension(gateway: GatewayServer, hooks: HookCaller):
    gateway.is_held = True
    seen, lease = childless(a_controller()), FakeLease(lent_seconds=4.75)
    calling = asyncio.ensure_future(hooks.call(seen, hook_to_call(seen), {"": b"{}"}, slot=OpenSlot(), lease=lease))
    await eventually(lambda: gateway.bodies == [b"{}"])

    lease.extend(4.5)
    await calling

    assert gateway.leases == [4.75, 4.5]
    assert lease.listeners == []


async def test_call_without_a_lease_has_a_body_and_nothing_else(gateway: GatewayServer, hooks: HookCaller):
    seen = childless(a_controller())

    await hooks.call(seen, hook_to_call(seen), {"": b"{}"}, slot=OpenSlot(), lease=FakeLease(lent_seconds=math.inf))

    assert (gateway.bodies, gateway.leases) == ([b"{}"], [])


async def test_gateway_that_is_not_there_is_an_outage(gateway: GatewayServer):
    port_nobody_has = "http://127.0.0.1:1"
    async with gateway_of(Settings(gateway_url=port_nobody_has)) as peer:
        hooks = HookCaller(peer, token="")

        with pytest.raises(Unavailable, match="can't be reached"):
            await desired(hooks)

    assert gateway.bodies == []


async def test_controller_without_a_sync_webhook_is_its_authors_fault(hooks: HookCaller):
    parts = a_controller()
    controller: JsonObject = {**parts, "spec": {**unstructured.child_object(parts, "spec"), "hooks": {"sync": {}}}}

    with pytest.raises(InvalidSpec, match=r"spec\.hooks\.sync\.webhook"):
        await desired(hooks, controller)


async def test_slot_is_lent_while_the_webhook_thinks(gateway: GatewayServer, hooks: HookCaller):
    lent: list[int] = []
    limiter = ConcurrencyLimiter(active=1, total=10, on_room=lambda: lent.append(limiter.waiting))

    async with limiter.slot() as slot:
        seen = childless(a_controller())
        await asked(hooks, seen, without_history(seen).live, slot)

        assert lent == [1]
        assert limiter.waiting == 0
    assert len(gateway.bodies) == 1


def two_revisions() -> list[Revision]:
    """The latest and an older revision of a parent."""
    return [
        Revision(name=name, patch={}, parent=a_parent(spec={"text": text}), claims=frozenset(), stored=None)
        for name, text in (("things-2", "new"), ("things-1", "old"))
    ]


async def test_every_revision_is_asked_about_at_once(gateway: GatewayServer, hooks: HookCaller):
    """Neither call is answered before both have arrived."""
    gateway.meeting = asyncio.Barrier(2)

    answers = await asked(hooks, childless(a_controller()), two_revisions(), OpenSlot())

    assert len(answers) == 2
    bodies = {
        headers[call.REVISION_HEADER]: loads(body)["parent"]["spec"] for headers, body in zip(gateway.headers, gateway.bodies, strict=True)
    }
    assert bodies == {"things-2": {"text": "new"}, "things-1": {"text": "old"}}


async def test_answers_stand_in_the_order_of_their_revisions(gateway: GatewayServer, hooks: HookCaller):
    gateway.echoes = True

    answers = await asked(hooks, childless(a_controller()), two_revisions(), OpenSlot())

    assert [answer.status for answer in answers] == [{"revision": "things-2"}, {"revision": "things-1"}]


async def test_a_revision_without_an_answer_leaves_all_without_one(gateway: GatewayServer, hooks: HookCaller):
    gateway.status = 503

    with pytest.raises(Unavailable, match="503"):
        await asked(hooks, childless(a_controller()), two_revisions(), OpenSlot())


async def test_a_parent_without_revisions_is_asked_about_under_no_revisions_name(gateway: GatewayServer, hooks: HookCaller):
    await desired(hooks)

    assert gateway.headers[0][call.REVISION_HEADER] == ""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The files of a reconciler's certificate and of the gateway's CA."""
    ours, theirs = Authority("ours"), Authority("theirs")
    (tmp_path / "ours.pem").write_bytes(ours.certificate_pem)
    (tmp_path / "theirs.pem").write_bytes(theirs.certificate_pem)
    ours.serving("gateway", hosts=["127.0.0.1"]).write(tmp_path / "gateway")
    ours.client("reconciler").write(tmp_path / "reconciler")
    return tmp_path


def demanding(files: Path) -> ssl.SSLContext:
    """The TLS context of a gateway that requires a client certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(files / "ours.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(files / "gateway.crt", files / "gateway.key")
    return context


async def test_gateway_by_mutual_tls_is_shown_a_certificate(files: Path):
    async with serving(GatewayServer(), tls=demanding(files)) as gateway:
        settings = Settings(
            gateway_url=gateway.url,
            gateway_ca_file=str(files / "ours.pem"),
            gateway_client_cert_file=str(files / "reconciler.crt"),
            gateway_client_key_file=str(files / "reconciler.key"),
        )
        async with gateway_of(settings) as peer:
            await desired(HookCaller(peer, token=""))

    assert len(gateway.bodies) == 1


@pytest.mark.parametrize("authority", ["", "theirs.pem", "ours.pem"], ids=["the system's", "another", "ours, but nothing shown"])
async def test_without_trust_on_both_sides_nothing_is_called(files: Path, authority: str):
    async with serving(GatewayServer(), tls=demanding(files)) as gateway:
        settings = Settings(gateway_url=gateway.url, gateway_ca_file=str(files / authority) if authority else "")
        async with gateway_of(settings) as peer:
            with pytest.raises(Unavailable, match="can't be reached"):
                await desired(HookCaller(peer, token=""))

    assert gateway.bodies == []
