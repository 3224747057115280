"""Two watchers: the death of the one that leads goes unnoticed but for a moment, and one that comes back from the dead
changes nothing.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story, three_config_maps
from metaloop.devkit.testbed.tcpproxy import TcpProxy
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)
_LEASE_SECONDS = 6
_SHORTEST_LEASE_SECONDS = 3
_LONG_LEASE_SECONDS = 100
_HOOK_SECONDS = 0.2
_BUSY_SECONDS = 45.0
"""What a busy machine may need on top of a lease."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def story(platform: Platform) -> AsyncIterator[Story]:
    """A story that is served by two watchers."""
    async with _served(platform, "failover", lease_seconds=_LEASE_SECONDS) as story:
        yield story


@asynccontextmanager
async def _served(
    platform: Platform, name: str, *, lease_seconds: int, first_watcher: Mapping[str, str] | None = None
) -> AsyncIterator[Story]:
    """A story that is served by two watchers with such a lease, which is in the namespace of the story.

    `first_watcher` are settings of one of them. No hook was ever asked about one parent twice at once.
    """
    apart = Apart(name)
    settings = apart.settings(LEADER_ELECTION="true", LEADER_LEASE_SECONDS=str(lease_seconds), LEADER_NAMESPACE=name)
    async with folder_apart(platform) as own, Webhook.serve() as webhook:
        await own.cluster.create(NAMESPACES, named(NAMESPACES, name))
        async with own.stack(watchers=(first_watcher or {}, {}), reconcilers=1, settings=settings) as stack:
            story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=name)
            await story.controller(_slow_hook)
            yield story
            await story.end()
        assert webhook.overlaps == []


async def test_syncs_go_on_within_the_lease_time_when_the_leader_is_killed(story: Story) -> None:
    await _settles(story, "before-kill")
    leader = await _leader(story)

    await leader.kill()

    await _settles(story, "after-kill", within_seconds=_LEASE_SECONDS + _BUSY_SECONDS)
    await leader.start()


async def test_syncs_go_on_at_once_when_the_leader_is_asked_to_stop(platform: Platform) -> None:
    """The other watcher does not wait for the end of the lease, which would be long."""
    async with _served(platform, "handover", lease_seconds=_LONG_LEASE_SECONDS) as story:
        await _settles(story, "before-stop")
        leader = await _leader(story)

        stopping = asyncio.create_task(leader.stop())
        await story.parent("after-stop", text="hello")

        await eventually(lambda: story.called(1, parent="after-stop"), within_seconds=_BUSY_SECONDS)
        await eventually(lambda: story.settled("after-stop"))
        await stopping


async def test_a_leader_that_slept_through_its_lease_changes_nothing_when_it_wakes(story: Story) -> None:
    leader = await _leader(story)
    for number in range(20):
        await story.parent(f"sleep-{number}", text="before")

    leader.daemon.pause()
    try:
        await eventually(lambda: _other_leads(story, leader), within_seconds=_LEASE_SECONDS + _BUSY_SECONDS)
        for number in range(20):
            await story.change(f"sleep-{number}", text="after")
    finally:
        leader.daemon.resume()

    for number in range(20):
        name = f"sleep-{number}"
        await eventually(lambda name=name: story.shows(name, text="after"), within_seconds=30)
        await eventually(lambda name=name: story.settled(name), within_seconds=30)
    assert await _leader(story) is not leader
    assert story.lab.webhook.overlaps == []


async def test_with_the_shortest_lease_syncs_go_on_a_few_seconds_after_the_leaders_death(platform: Platform) -> None:
    async with _served(platform, "shortest-lease", lease_seconds=_SHORTEST_LEASE_SECONDS) as story:
        for number in range(20):
            await story.parent(f"before-{number}", text="hello")
        for number in range(20):
            await eventually(lambda number=number: story.settled(f"before-{number}"), within_seconds=30)
        leader = await _leader(story)

        await leader.kill()

        await _settles(story, "after-kill", within_seconds=_SHORTEST_LEASE_SECONDS + _BUSY_SECONDS)


async def test_a_leader_that_does_not_reach_nats_gives_way_to_a_watcher_that_does(platform: Platform) -> None:
    async with TcpProxy.before(platform.broker.url) as proxy:
        far = {"NATS_URL": proxy.instead_of(platform.broker.url)}
        async with _served(platform, "far", lease_seconds=_LEASE_SECONDS, first_watcher=far) as story:
            one, other = story.lab.stack.watchers
            await _settles(story, "before")
            if await _leader(story) is not one:
                await other.stop()
                await eventually(lambda: _other_leads(story, other))
                await other.start()

            proxy.partition()

            await _settles(story, "after", within_seconds=2 * _LEASE_SECONDS + _BUSY_SECONDS)
            assert await _leader(story) is other
            proxy.heal()
            await _settles(story, "healed")


async def _slow_hook(request: JsonObject) -> JsonObject:
    """Slow enough that two at once for one parent would be seen."""
    await asyncio.sleep(_HOOK_SECONDS)
    return three_config_maps(request)


async def _settles(story: Story, parent: str, *, within_seconds: float = 30.0) -> None:
    await story.parent(parent, text="hello")
    await eventually(lambda: story.settled(parent), within_seconds=within_seconds)


async def _leader(story: Story) -> Service:
    """The watcher that holds the Lease."""
    watchers = story.lab.stack.watchers

    async def look() -> Service:
        holder = await _holder(story)
        found = [watcher for watcher in watchers if watcher.daemon.is_running and f"-{watcher.pid}-" in holder]
        expect(found, f"none of us holds the Lease, but {holder!r}")
        return found[0]

    return await eventually(look)


async def _other_leads(story: Story, former: Service) -> None:
    holder = await _holder(story)
    expect(holder and f"-{former.pid}-" not in holder, f"the Lease is held by {holder!r}")


async def _holder(story: Story) -> str:
    [lease] = await story.cluster.list(LEASES, story.name)
    return unstructured.text(unstructured.child_object(lease, "spec"), "holderIdentity")
