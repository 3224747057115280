"""What a sync asks about the cluster: its kinds, live objects, and instances that others have made."""

import pytest
from builders import CONFIG_MAPS, DEPLOYMENTS, THINGS
from fake_api import FakeApi

from metaloop.common.errors import ApiStatus, Refused, Unavailable
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.testing.clock import FakeClock
from metaloop.reconciler.cluster_reader import ClusterReader
from metaloop.reconciler.core.component.cluster import Address, Cluster, KindName
from metaloop.reconciler.core.component.managed_types import ManagedType
from metaloop.reconciler.core.steps import DescribeCluster, FindForeign, ReadObjects

MAP, THING = KindName("v1", "ConfigMap"), KindName(THINGS.api_version, THINGS.kind)
OLDER_THINGS = ResourceInfo(api_version="example.com/v1beta1", resource="things", kind="Thing", namespaced=True)


class Found:
    """Discovery that finds resources, once it is asked."""

    def __init__(self, *served: ResourceInfo) -> None:
        self.served = served
        self.refreshes = 0
        self._known: tuple[ResourceInfo, ...] = ()

    async def refresh(self) -> bool:
        self.refreshes += 1
        self._known = self.served
        return True

    def resources(self) -> dict[ResourceId, ResourceInfo]:
        return {info.id: info for info in self._known}

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        return next((info for info in self._known if (info.api_version, info.kind) == (api_version, kind)), None)


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def reader(found: Found, clock: FakeClock) -> ClusterReader:
    """A reader that uses this discovery."""
    return ClusterReader(found, uid="cluster", width=2, clock=clock)


def thing(name: str, **labels: str) -> JsonObject:
    """A thing with these labels."""
    return {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": name, "namespace": "n", "labels": {**labels}}}


async def test_cluster_is_described_by_its_uid_and_the_kinds_that_are_served(api: FakeApi, clock: FakeClock):
    described = await reader(Found(CONFIG_MAPS), clock).answer(DescribeCluster(frozenset({MAP, THING})), api=api)

    assert described == Cluster(uid="cluster", resources={MAP: CONFIG_MAPS})


async def test_discovery_is_asked_again_only_for_kinds_that_it_does_not_know(api: FakeApi, clock: FakeClock):
    found = Found(CONFIG_MAPS)
    asked = reader(found, clock)
    for _ in range(3):
        await asked.answer(DescribeCluster(frozenset({MAP})), api=api)

    assert found.refreshes == 1


async def test_unknown_kinds_are_not_asked_for_all_the_time(api: FakeApi, clock: FakeClock):
    found = Found(CONFIG_MAPS)
    asked = reader(found, clock)
    for _ in range(3):
        await asked.answer(DescribeCluster(frozenset({THING})), api=api)
    before = found.refreshes
    clock.now += 5
    await asked.answer(DescribeCluster(frozenset({THING})), api=api)

    assert (before, found.refreshes) == (1, 2)


async def test_live_objects_come_in_order_and_none_for_what_does_not_exist(api: FakeApi, clock: FakeClock):
    for name in "ac":
        api.put(THINGS, thing(name))

    step = ReadObjects([Address(THINGS, "n", name) for name in "cba"])
    found = await reader(Found(), clock).answer(step, api=api)

    assert isinstance(found, list)
    assert [each and each["metadata"]["name"] for each in found] == ["c", None, "a"]


async def test_failure_of_one_read_is_raised_as_it_is(api: FakeApi, clock: FakeClock):
    api.failing["get", "b"] = Unavailable("busy")

    with pytest.raises(Unavailable, match="busy"):
        await reader(Found(), clock).answer(ReadObjects([Address(THINGS, "n", name) for name in "ab"]), api=api)


async def test_foreign_instances_are_those_without_our_label(api: FakeApi, clock: FakeClock):
    for obj in (thing("ours", owner="us"), thing("theirs", owner="them"), thing("free")):
        api.put(THINGS, obj)

    step = FindForeign((ManagedType("example.com", "*", "Thing"),), "owner", "us")
    found = await reader(Found(THINGS, OLDER_THINGS, CONFIG_MAPS, DEPLOYMENTS), clock).answer(step, api=api)

    assert found == ["Thing n/theirs", "Thing n/free"]
    assert api.requests["list"] == 1


@pytest.mark.parametrize("code", [404, 405])
async def test_resource_that_cannot_be_listed_has_no_instances(api: FakeApi, clock: FakeClock, code: int):
    api.put(THINGS, thing("a"))
    api.failing["list", CONFIG_MAPS.resource] = Refused(ApiStatus(code=code, reason="", message="no list"))

    found = await reader(Found(CONFIG_MAPS, THINGS), clock).answer(FindForeign((ManagedType("*", "*", "*"),), "owner", "us"), api=api)

    assert found == ["Thing n/a"]


async def test_refused_list_fails_the_gate(api: FakeApi, clock: FakeClock):
    api.failing["list", THINGS.resource] = Refused(ApiStatus(code=403, reason="Forbidden", message="no list"))

    with pytest.raises(Refused):
        await reader(Found(THINGS), clock).answer(FindForeign((ManagedType("*", "*", "*"),), "owner", "us"), api=api)


async def test_only_the_first_foreign_instances_are_named(api: FakeApi, clock: FakeClock):
    for name in "abcde":
        api.put(THINGS, thing(name))

    step = FindForeign((ManagedType("*", "*", "*"),), "owner", "us")
    found = await reader(Found(THINGS), clock).answer(step, api=api)

    assert found == ["Thing n/a", "Thing n/b", "Thing n/c"]


async def test_objects_of_a_component_are_read_on_behalf_of_its_user(api: FakeApi, clock: FakeClock):
    steps = reader(Found(THINGS), clock)

    await steps.answer(ReadObjects([Address(CONFIG_MAPS, "n", "a")], "jane"), api=api)
    await steps.answer(FindForeign((ManagedType("example.com", "*", "Thing"),), "op/owner-id", "us", "jane"), api=api)
    await steps.answer(ReadObjects([Address(CONFIG_MAPS, "n", "a")]), api=api)

    assert api.asked == [("jane", "get", "a"), ("jane", "list", "things"), ("", "get", "a")]
