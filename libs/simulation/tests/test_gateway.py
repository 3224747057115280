"""The way from a reconciler through the gateway's application to a webhook."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from virtual import network, now, on_virtual_time

from metaloop.common.hooks.call import PARENT_HEADER, PATH, TARGET_HEADER, VERDICT_HEADER, target_header
from metaloop.common.http.connection import NoAnswer
from metaloop.common.http.peer import NoConnection, header_lines
from metaloop.common.json import JsonObject
from metaloop.common.service import Service
from metaloop.hookgateway import app
from metaloop.hookgateway.settings import Settings
from metaloop.hookgateway.watch_objects import NoCluster
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.gateway import GatewayPeer
from metaloop.simulation.history import History
from metaloop.simulation.network import GATEWAY, Port
from metaloop.simulation.processes import Process
from metaloop.simulation.webhooks import CallEnd, CallFate, Webhooks

BODY = b'{"parent":{"metadata":{"name":"a","uid":"u"},"spec":{}}}'


class Calls(FaultPlan):
    """All calls end alike."""

    def __init__(self, fate: CallFate) -> None:
        self._fate = fate

    def of_call(self, path: str) -> CallFate:
        del path
        return self._fate


class Scene:
    """A gateway, a webhook that answers by its request, and a reconciler's way to them."""

    def __init__(self, fate: CallFate | None = None) -> None:
        self.webhooks = Webhooks(network=network(), faults=Calls(fate or CallFate()), history=History())
        self.url = self.webhooks.url("/sets/sync", lambda request: {"echo": request["parent"]})
        self.gateway = Process("gateway-1", self._assemble, seed="1", history=History())
        self.port = Port("reconciler-1")
        self.peer = GatewayPeer([self.gateway], self.port, network())

    async def started(self) -> "Scene":
        self.gateway.start()
        await asyncio.sleep(0.1)
        return self

    async def ask(self) -> tuple[str, bytes]:
        """The verdict's name, and its body."""
        identity: JsonObject = {"kind": "CompositeController", "name": "sets", "uid": "c"}
        target: JsonObject = {"controller": identity, "hook": "sync", "webhook": {"url": self.url, "timeout": "5s"}, "endpointConfigs": []}
        headers = {TARGET_HEADER: target_header(target), PARENT_HEADER: "u"}
        answer = await self.peer.ask("POST", PATH, header_lines(headers), BODY)
        return answer.header(VERDICT_HEADER), answer.body

    @asynccontextmanager
    async def _assemble(self, service: Service, port: Port) -> AsyncIterator[None]:
        async with app.assembled(service, Settings(), NoCluster("none is needed"), opened=self.webhooks.opened(port)):
            yield


def test_a_call_reaches_its_webhook_and_the_answer_comes_back():
    async def main() -> tuple[str, bytes]:
        return await (await Scene().started()).ask()

    verdict, body = on_virtual_time(main())

    assert (verdict, body) == ("accepted", b'{"echo":{"metadata":{"name":"a","uid":"u"},"spec":{}}}')


@pytest.mark.parametrize("end", [CallEnd.FAILED, CallEnd.LOST, CallEnd.REFUSED])
def test_a_call_that_fails_is_rejected(end: CallEnd):
    async def main() -> str:
        return (await (await Scene(CallFate(end=end)).started()).ask())[0]

    assert on_virtual_time(main()) == "rejected"


def test_a_webhook_that_is_too_slow_is_given_up_by_the_gateway():
    async def main() -> tuple[str, float]:
        scene = await Scene(CallFate(seconds=60)).started()
        began = now()
        verdict, _ = await scene.ask()
        return verdict, now() - began

    verdict, seconds = on_virtual_time(main())

    assert verdict == "rejected"
    assert 5 < seconds < 6


def test_a_call_ends_with_its_caller():
    async def main() -> list[int]:
        scene, live = await Scene(CallFate(seconds=4)).started(), list[int]()
        asking = asyncio.ensure_future(scene.ask())
        await asyncio.sleep(1)
        live.append(len(scene.webhooks.live))
        asking.cancel()
        await asyncio.sleep(0.1)
        return [*live, len(scene.webhooks.live)]

    assert on_virtual_time(main()) == [1, 0]


def test_a_call_of_a_caller_that_vanished_ends_with_its_keep_alive():
    async def main() -> list[int]:
        scene, live = await Scene(CallFate(seconds=4.9)).started(), list[int]()
        asking = asyncio.ensure_future(scene.ask())
        await asyncio.sleep(0.5)
        scene.port.cut(GATEWAY)
        for pause in (3.0, 1.2):
            await asyncio.sleep(pause)
            live.append(len(scene.webhooks.live))
        asking.cancel()
        return live

    assert on_virtual_time(main()) == [1, 0]


def test_a_short_partition_only_delays_an_answer():
    async def main() -> tuple[str, float]:
        scene = await Scene(CallFate(seconds=1)).started()
        began, asking = now(), asyncio.ensure_future(scene.ask())
        await asyncio.sleep(0.5)
        scene.port.cut(GATEWAY)
        await asyncio.sleep(2)
        scene.port.join(GATEWAY)
        return (await asking)[0], now() - began

    verdict, seconds = on_virtual_time(main())

    assert verdict == "accepted"
    assert 2.5 < seconds < 2.6


def test_a_caller_that_reaches_the_gateway_again_learns_soon_that_its_connection_is_gone():
    async def main() -> float:
        scene = await Scene(CallFate(seconds=4.9)).started()
        began, asking = now(), asyncio.ensure_future(scene.ask())
        await asyncio.sleep(0.1)
        scene.port.cut(GATEWAY)
        await asyncio.sleep(6)
        scene.port.join(GATEWAY)
        with pytest.raises(NoAnswer):
            await asking
        return now() - began

    assert 8 < on_virtual_time(main()) < 8.2


def test_a_gateway_that_crashes_ends_its_calls():
    async def main() -> int:
        scene = await Scene(CallFate(seconds=4)).started()
        asking = asyncio.ensure_future(scene.ask())
        await asyncio.sleep(1)
        scene.gateway.crash()
        with pytest.raises(NoAnswer):
            await asking
        return len(scene.webhooks.live)

    assert on_virtual_time(main()) == 0


def test_without_a_gateway_there_is_no_connection():
    async def main() -> None:
        with pytest.raises(NoConnection):
            await Scene().ask()

    on_virtual_time(main())
