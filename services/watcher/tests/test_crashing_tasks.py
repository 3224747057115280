"""Each long-running task of the watcher crashes: it goes on, or the process ends with a failure. None goes missing."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.cluster import COMPOSITES, Cluster
from metaloop.devkit.testbed.crashes import RunningService
from metaloop.devkit.testbed.eventually import eventually as comes_true
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, parent_resource
from metaloop.watcher.app import build
from metaloop.watcher.settings import WatcherSettings

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

GO_ON = {"discovery", "events", "handover", "health", "ownership", "release", "watch"}
"""They serve many objects: one that crashes them must not end the service of the others."""
END = {"broker", "echo", "exclusivity", "feed", "lead", "memory", "mend", "stall", "supervise"}
"""What they keep would be in doubt: a new process begins from a known state."""
ERRORS = [RuntimeError("thrown by a test"), ExceptionGroup("thrown by a test", [RuntimeError("one"), KeyError("two")])]


@pytest_asyncio.fixture(loop_scope="session")
async def watcher(plane: ControlPlane, cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[RunningService]:
    """A watcher that leads, and serves one controller."""
    parents = parent_resource(f"{namespace.replace('-', '')}s")
    await install_parent(cluster, parents)
    manifest = composite(namespace, parent=parents, hook_url="http://127.0.0.1:1/", children=[child_rule()])
    labelled: JsonObject = {**manifest, "metadata": {**unstructured.metadata(manifest), "labels": {"test": namespace}}}
    await cluster.create(COMPOSITES, labelled)
    async with Broker.start(tmp_path) as broker:
        settings = WatcherSettings(
            nats_url=broker.url,
            kubeconfig=str(plane.kubeconfig_path),
            target_label_selector=f"test={namespace}",
            leader_election=True,
            leader_namespace=namespace,
        )
        async with RunningService.start(partial(build, settings=settings)) as running:
            await eventually(lambda: running.tasks().keys() >= GO_ON | END)
            yield running
    await cluster.delete(COMPOSITES, "", namespace)


async def test_every_long_running_task_is_among_those_that_crash_here(watcher: RunningService):
    await eventually(lambda: set(watcher.tasks()) == GO_ON | END)


@pytest.mark.parametrize("error", ERRORS, ids=["plain", "group"])
async def test_task_that_serves_many_objects_goes_on_after_a_crash(watcher: RunningService, error: Exception):
    for word in sorted(GO_ON):
        await watcher.crash(word, error)
        await eventually(lambda word=word: word in watcher.tasks())

    await eventually(lambda: set(watcher.tasks()) == GO_ON | END)
    await comes_true(watcher.check_ready)


@pytest.mark.parametrize("error", ERRORS, ids=["plain", "group"])
@pytest.mark.parametrize("word", sorted(END))
async def test_crash_of_any_other_task_ends_the_process(watcher: RunningService, word: str, error: Exception):
    await watcher.crash(word, error)

    assert await watcher.failed()
    assert not await watcher.is_ready()
