"""The first example tells its story: manifests and hook as they stand in examples/hello."""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
import yaml

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.ports import free_port
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, install

EXAMPLE = Path(__file__).parents[2] / "examples" / "hello"
HELLOS = ResourceInfo(api_version="example.com/v1", resource="hellos", kind="Hello", namespaced=True, has_status=True)


@pytest_asyncio.fixture(loop_scope="session")
async def hook_url() -> AsyncIterator[str]:
    """Where the example's hook is served, by its own program."""
    port = str(free_port())
    process = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE / "hook.py"), port, stdout=asyncio.subprocess.PIPE)
    if process.stdout is None:
        raise RuntimeError("no pipe to the hook")
    await process.stdout.readline()
    yield f"http://127.0.0.1:{port}/sync"
    process.kill()
    await process.communicate()


async def test_hello_gets_its_greetings(lab: Lab, hook_url: str) -> None:
    cluster = lab.cluster
    controller = _manifest("controller")
    webhook = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    webhook["sync"] = {"webhook": {"url": hook_url}}
    await cluster.create(COMPOSITES, controller)
    await install(cluster, _manifest("crd"))
    await cluster.create(HELLOS, _manifest("hello"), namespace="default")

    await eventually(lambda: _greets(cluster, "World"))
    await cluster.patch(HELLOS, "default", "world", {"spec": {"who": "Moon"}})
    await eventually(lambda: _greets(cluster, "Moon"))
    await cluster.delete(COMPOSITES, "", "hello")


async def _greets(cluster: Cluster, who: str) -> None:
    listed = await cluster.list(CONFIG_MAPS, "default", labels="language")
    found = {unstructured.name(item): unstructured.child_object(item, "data") for item in listed}
    wanted = {
        "world-english": {"greeting": f"Hello, {who}!"},
        "world-french": {"greeting": f"Bonjour, {who}!"},
        "world-german": {"greeting": f"Guten Tag, {who}!"},
    }
    expect(found == wanted, f"greetings are {found}")
    status = unstructured.child_object(await cluster.get(HELLOS, "default", "world"), "status")
    expect(status.get("greetings") == 3, f"status is {status}")


def _manifest(name: str) -> JsonObject:
    return yaml.safe_load((EXAMPLE / f"{name}.yaml").read_text())
