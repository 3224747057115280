"""The leading watcher is killed while inputs are being mapped: each has its output in the end, mapped by one call at a
time.
"""

import asyncio

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.mapping import Mapped, copying
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)
_INPUTS = 2_000


@pytest.mark.timeout(150)
async def test_killed_leader_leaves_no_input_unmapped(platform: Platform) -> None:
    apart = Apart("map-failover")
    settings = apart.settings(LEADER_ELECTION="true", LEADER_LEASE_SECONDS="4", LEADER_NAMESPACE=apart.name)
    async with folder_apart(platform) as own, Webhook.serve() as webhook:
        await own.cluster.create(NAMESPACES, named(NAMESPACES, apart.name))
        async with own.stack(watchers=({}, {}), settings=settings) as stack:
            lab = Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels)
            mapped = Mapped(story=Story(lab=lab, name=apart.name), name=apart.name)
            await mapped.install(copying("copy"))
            await mapped.parent("p")
            await eventually(lambda: mapped.ready("True"))

            async with asyncio.TaskGroup() as tasks:
                for number in range(_INPUTS):
                    tasks.create_task(mapped.input(f"i{number}"))
                await eventually(lambda: mapped.called(_INPUTS // 4), within_seconds=60)
                leader = await eventually(lambda: _leader(mapped.story))
                await leader.kill()

            await eventually(lambda: _all_mapped(mapped), within_seconds=90)
            await eventually(lambda: _counted(mapped), within_seconds=60)
            await mapped.story.end()
        assert webhook.overlaps == []


async def _all_mapped(mapped: Mapped) -> None:
    outputs = await mapped.outputs()
    expect(len(outputs) == _INPUTS, f"{len(outputs)} of {_INPUTS} inputs are mapped")
    sources = await mapped.story.cluster.list(CONFIG_MAPS, mapped.story.name, labels="input=yes")
    wanted = {f"{unstructured.name(each)}-p-copy" for each in sources}
    expect(set(outputs) == wanted, f"the outputs differ in {set(outputs) ^ wanted}")


async def _counted(mapped: Mapped) -> None:
    counts: JsonObject = {"configmaps": {"total": _INPUTS}}
    status = await mapped.status()
    expect((status.get("inputs"), status.get("outputs")) == (counts, counts), f"the status is {status}")
    await mapped.ready("True")


async def _leader(story: Story) -> Service:
    """The watcher that holds the Lease."""
    [lease] = await story.cluster.list(LEASES, story.name)
    holder = unstructured.text(unstructured.child_object(lease, "spec"), "holderIdentity")
    found = [each for each in story.lab.stack.watchers if each.daemon.is_running and f"-{each.pid}-" in holder]
    expect(found, f"none of us holds the Lease, but {holder!r}")
    return found[0]
