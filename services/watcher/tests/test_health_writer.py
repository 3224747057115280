"""What is written into a controller's status, and when, before a real API server."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.testing.clock import FakeClock
from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import COMPOSITES, Cluster
from metaloop.devkit.testbed.manifests import composite, parent_resource
from metaloop.watcher.core.health import ControllerHealth, HealthSummary
from metaloop.watcher.health_writer import HealthWriter, StatusIntervals

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SYNCED = HealthSummary(generation=1, reason="Synced", message="all parents are in sync", is_ready=True, parents=2)


class Ward:
    """One controller, and its health as the writer sees it."""

    def __init__(self, cluster: Cluster, proxy: ApiProxy, name: str) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self.name = name
        self.clock = FakeClock()
        self.looks = 0
        self.raw: JsonObject = {}
        self.summary = SYNCED
        self.leads = True

    def health(self) -> Iterable[ControllerHealth]:
        self.looks += 1
        yield ControllerHealth(resource=COMPOSITES, raw=self.raw, summary=self.summary)

    async def looked_at(self) -> None:
        """Return once the present state was looked at, and what followed from it is done."""
        looks = self.looks
        await eventually(lambda: self.looks >= looks + 2)

    async def status(self) -> JsonObject:
        self.raw = await self._cluster.get(COMPOSITES, "", self.name)
        return unstructured.child_object(self.raw, "status")

    def writes(self) -> int:
        return sum(asked.method == "PATCH" for asked in self._proxy.asked)


@pytest_asyncio.fixture(loop_scope="session")
async def ward(kube: KubeClient, cluster: Cluster, proxy: ApiProxy, namespace: str) -> AsyncIterator[Ward]:
    ward = Ward(cluster, proxy, namespace)
    manifest = composite(ward.name, parent=parent_resource("wards"), hook_url="http://127.0.0.1:1/", children=[])
    ward.raw = await cluster.create(COMPOSITES, manifest)
    async with asyncio.TaskGroup() as tasks:
        writer = HealthWriter(
            kube, source=ward.health, clock=ward.clock, leads=lambda: ward.leads, intervals=StatusIntervals(check_seconds=0.05)
        )
        running = tasks.create_task(writer.run())
        yield ward
        running.cancel()
    await cluster.delete(COMPOSITES, "", ward.name)


async def test_nothing_is_written_in_a_controllers_first_seconds(ward: Ward):
    await ward.looked_at()
    ward.clock.advance(4)
    await ward.looked_at()

    assert ward.writes() == 0


async def test_health_is_written_once_and_then_left_alone(ward: Ward):
    await ward.looked_at()
    ward.clock.advance(10)
    await ward.looked_at()

    status = await ward.status()
    ward.clock.advance(100)
    await ward.looked_at()

    assert status["observedGeneration"] == 1
    assert status["parents"] == 2
    assert [entry["reason"] for entry in status["conditions"]] == ["Synced"]  # type: ignore[union-attr,index,call-overload]
    assert ward.writes() == 1


async def test_a_changed_condition_is_written_soon_and_counts_later(ward: Ward):
    await ward.looked_at()
    ward.clock.advance(10)
    await ward.looked_at()

    ward.summary = replace(SYNCED, parents=3)
    ward.clock.advance(5)
    await ward.looked_at()
    assert ward.writes() == 1
    ward.summary = replace(ward.summary, is_ready=False, reason="HookFailing", failing=1)
    await ward.looked_at()
    assert ward.writes() == 2
    ward.summary = replace(ward.summary, failing=2)
    ward.clock.advance(30)
    await ward.looked_at()

    status = await ward.status()
    assert (status["parents"], status["failingParents"]) == (3, 2)
    assert ward.writes() == 3


async def test_the_last_status_stands_while_some_parents_have_not_been_synced(ward: Ward):
    await ward.looked_at()
    ward.clock.advance(10)
    await ward.looked_at()

    ward.summary = replace(SYNCED, is_ready=False, reason="Starting", is_settled=False)
    await ward.looked_at()
    ward.clock.advance(29)
    await ward.looked_at()
    assert ward.writes() == 1

    ward.clock.advance(1)
    await ward.looked_at()
    assert ward.writes() == 2


async def test_an_edited_spec_is_left_alone_for_as_long_as_a_new_controller(ward: Ward):
    await ward.looked_at()
    ward.clock.advance(10)
    await ward.looked_at()

    unstructured.metadata(ward.raw)["generation"] = 2
    ward.summary = replace(SYNCED, generation=2)
    await ward.looked_at()
    ward.clock.advance(4)
    await ward.looked_at()

    assert ward.writes() == 1
    ward.clock.advance(1)
    await ward.looked_at()
    assert ward.writes() == 2


async def test_a_failed_write_is_repeated_later(ward: Ward, proxy: ApiProxy):
    proxy.refusals["compositecontrollers"] = 503
    await ward.looked_at()
    ward.clock.advance(10)
    await ward.looked_at()
    proxy.refusals.clear()

    ward.clock.advance(30)
    await ward.looked_at()

    assert (await ward.status())["parents"] == 2


async def test_a_former_leader_writes_nothing(ward: Ward):
    ward.leads = False
    await ward.looked_at()
    ward.clock.advance(60)
    await ward.looked_at()
    assert ward.writes() == 0

    ward.leads = True
    await ward.looked_at()

    assert ward.writes() == 1
