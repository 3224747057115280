"""Everything that the story happens in: a cluster, Metaloop, the example's hook and its controller."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import child_object
from metaloop.devkit import probes, tell
from metaloop.devkit.assets import ensure
from metaloop.devkit.demo.sight import HELLOS
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Program, group, start_on_free_port
from metaloop.devkit.stack import Stack
from metaloop.devkit.testbed.audit import Request
from metaloop.devkit.testbed.cluster import COMPOSITES, NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import Ground, install
from metaloop.devkit.workdir import private_folder

NAMESPACE = "demo"
_HOOK_CALLS = re.compile(r"^metacontroller_sync_requests_total\{.*\} ([0-9.e+]+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The running parts, and what can be asked of them."""

    ground: Ground
    stack: Stack

    @property
    def cluster(self) -> Cluster:
        """The way into the cluster, as its user."""
        return self.ground.cluster

    async def create_hello(self, name: str) -> None:
        """A new parent."""
        hello: JsonObject = {"apiVersion": "example.com/v1", "kind": "Hello", "metadata": {"name": name}, "spec": {"who": "World"}}
        await self.cluster.create(HELLOS, hello, namespace=NAMESPACE)

    def requests(self) -> list[Request]:
        """What Metaloop asked of the API server, by the server's own account."""
        return self.ground.audit.ours_since(0)

    async def hook_calls(self) -> int:
        """How often the hook was called, as the hook gateway counts it."""
        async with httpx.AsyncClient(trust_env=False) as client:
            metrics = (await client.get(self.stack.hookgateway.metrics_url)).text
        return sum(int(float(count)) for count in _HOOK_CALLS.findall(metrics))


@asynccontextmanager
async def raised(folder: Path, *, example: Path) -> AsyncIterator[World]:
    """The world, ready for the story, for as long as the block lasts."""
    if not (example / "hook.py").exists():
        raise DevkitError(f"there is no example in {example}: run this from the root of the repository, or name it with --example")
    programs = await ensure()
    async with AsyncExitStack() as parts:
        progress = tell.Progress("starting etcd, kube-apiserver, kube-controller-manager, nats-server")
        with progress.ticking():
            ground = await parts.enter_async_context(Ground.start(programs, folder))
        progress.done("control plane ready, Metaloop's CRDs installed")
        progress = tell.Progress("starting watcher, hookgateway, two reconcilers, and the example's hook")
        with progress.ticking():
            hook_url = await parts.enter_async_context(_hook(example, folder))
            stack = await parts.enter_async_context(ground.stack(reconcilers=2))
            await _install_example(ground.cluster, example, hook_url=hook_url)
        progress.done("Metaloop ready, the example's controller installed")
        yield World(ground=ground, stack=stack)


@asynccontextmanager
async def _hook(example: Path, folder: Path) -> AsyncIterator[str]:
    """Where the example's hook is served, by its own program."""
    folder = private_folder(folder, "hook")

    def program(port: int) -> Program:
        return Program(
            name="hook",
            argv=(sys.executable, str(example.absolute() / "hook.py"), str(port)),
            ready=probes.tcp_accepts(LOOPBACK, port),
            folder=folder,
        )

    async with group() as daemons:
        _, port = await start_on_free_port(daemons, program)
        yield f"http://{LOOPBACK}:{port}/sync"


async def _install_example(cluster: Cluster, example: Path, *, hook_url: str) -> None:
    controller = _manifest(example / "controller.yaml")
    child_object(child_object(controller, "spec"), "hooks")["sync"] = {"webhook": {"url": hook_url}}
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(install(cluster, _manifest(example / "crd.yaml")))
        tasks.create_task(cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    await cluster.create(COMPOSITES, controller)


def _manifest(file: Path) -> JsonObject:
    return yaml.safe_load(file.read_text())
