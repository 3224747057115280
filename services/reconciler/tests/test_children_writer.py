"""Writes of one parent are concurrent up to a limit, and each has its effect."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from builders import CONFIG_MAPS, config_map, observed
from component_world import a_component_controller
from fake_api import FakeApi
from fake_hooks import FakeRecorder

from metaloop.common.errors import Unavailable
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.children_writer import ChildrenWriter
from metaloop.reconciler.core.model import CreateChild, Plan
from metaloop.reconciler.server_side_writer import ServerSideWriter


@dataclass
class CountingApi(FakeApi):
    """Counts how many creations are in flight at most."""

    in_flight: int = 0
    most: int = 0

    async def create(self, info: ResourceInfo, obj: JsonObject, *, params: Mapping[str, str] | None = None) -> JsonObject:
        """Takes two turns of the event loop."""
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        self.in_flight -= 1
        return await super().create(info, obj, params=params)


def creations(count: int) -> Plan:
    return Plan(writes=tuple([CreateChild(info=CONFIG_MAPS, obj=config_map(f"map-{index}"), reason="test") for index in range(count)]))


def writer(*, width: int) -> ChildrenWriter:
    return ChildrenWriter(
        width=width, server_side=ServerSideWriter(recorder=FakeRecorder(), field_manager="metacontroller"), on_drift=lambda: None
    )


@pytest.mark.parametrize(("count", "most"), [(1, 1), (2, 2), (3, 3), (50, 3)])
async def test_no_more_writes_are_in_flight_than_the_width(count: int, most: int):
    api = CountingApi()

    effects = await writer(width=3).carry_out(creations(count), observed=observed(), api=api)

    assert api.most == most
    assert [write.name for write in effects.writes] == [f"map-{index}" for index in range(count)]


async def test_failed_write_stops_none_of_the_others():
    api = CountingApi(failing={("create", "map-1"): Unavailable("away")})

    effects = await writer(width=2).carry_out(creations(4), observed=observed(), api=api)

    assert [write.name for write in effects.writes] == ["map-0", "map-2", "map-3"]
    assert [type(failure.error) for failure in effects.failures] == [Unavailable]


async def test_effects_keep_versions_and_not_the_children_themselves():
    """Those of ten thousand children would be kept until the sync ends."""
    effects = await writer(width=2).carry_out(creations(2), observed=observed(), api=FakeApi())

    assert [{*done.written} for done in effects.done if done.written is not None] == [{"metadata"}, {"metadata"}]
    assert all(unstructured.uid(done.written) and unstructured.resource_version(done.written) for done in effects.done if done.written)


async def test_effects_keep_the_children_where_the_sync_reads_them():
    reading = replace(observed(), controller=a_component_controller())

    effects = await writer(width=2).carry_out(creations(1), observed=reading, api=FakeApi())

    [written] = [done.written for done in effects.done]
    assert written is not None
    assert (written["kind"], unstructured.name(written)) == ("ConfigMap", "map-0")
