"""The leading watcher is killed while inputs are being mapped: each has its output in the end, mapped by one call at a
time.
"""

import asyncio
from pathlib import Path

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.mapping import Mapped, copying
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)
_INPUTS = 500
_SETTINGS = {"LEADER_ELECTION": "true", "LEADER_LEASE_SECONDS": "4"}


@pytest.mark.timeout(150)
async def test_killed_leader_leaves_no_input_unmapped(assets: Path) -> None:
    with run_folder() as folder:
        async with Platform.start(assets, folder) as platform, Webhook.serve() as webhook:
            await install_parent(platform.cluster, THINGS)
            async with platform.stack(watchers=({}, {}), settings=_SETTINGS) as stack:
                lab = Lab(platform=platform, stack=stack, webhook=webhook)
                mapped = Mapped(story=Story(lab=lab, name="map-failover"), name="map-failover")
                await mapped.story.begin()
                await mapped.install(copying("copy"))
                await mapped.parent("p")
                await eventually(lambda: mapped.ready("True"))

                async with asyncio.TaskGroup() as tasks:
                    for number in range(_INPUTS):
                        tasks.create_task(mapped.input(f"i{number}"))
                    await eventually(lambda: mapped.called(_INPUTS // 4), within_seconds=120)
                    await (await _leader(mapped.story)).kill()

                await eventually(lambda: _all_mapped(mapped), within_seconds=180)
                await eventually(lambda: _counted(mapped), within_seconds=60)
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
    [lease] = [each for each in await story.cluster.list(LEASES) if unstructured.name(each).startswith("metaloop")]
    holder = unstructured.text(unstructured.child_object(lease, "spec"), "holderIdentity")
    [leader] = [each for each in story.lab.stack.watchers if each.daemon.is_running and f"-{each.pid}-" in holder]
    return leader
