"""Everything that a story happens in: a cluster, Metaloop, the example's hook and its controllers."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit import console, probes
from metaloop.devkit.assets import ensure
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Program, group, start_on_free_port
from metaloop.devkit.stack import Stack
from metaloop.devkit.testbed.audit import Request
from metaloop.devkit.testbed.builtin import SECRETS, SERVICES, STATEFUL_SETS, named
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, DECORATORS, NAMESPACES, ApiRefused, Cluster
from metaloop.devkit.testbed.lab import Ground, install
from metaloop.devkit.workdir import private_folder

_CRD_FILE = "crd.yaml"
_CONTROLLER_FILE = "controller.yaml"
_CONFLICT = 409
_CONTROLLERS = {resource.kind: resource for resource in (COMPOSITES, DECORATORS)}
_BUILTIN = {resource.kind: resource for resource in (NAMESPACES, CONFIG_MAPS, SECRETS, SERVICES, STATEFUL_SETS)}
_HOOK_CALLS = re.compile(r"^metacontroller_(?:sync|finalize|customize)_requests_total\{.*\} ([0-9.e+]+)$", re.MULTILINE)
_HOST_AND_PORT = re.compile(r"^http://[^/]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The running parts, and what can be asked of them."""

    ground: Ground
    stack: Stack
    example: Path
    namespace: str
    """Where the story's objects are that say nothing else."""

    @property
    def cluster(self) -> Cluster:
        """The way into the cluster, as its user."""
        return self.ground.cluster

    async def apply(self, file: str) -> None:
        """The objects of one of the example's files are there."""
        kinds = {**_BUILTIN, **{resource.kind: resource for resource in self.kinds()}}
        for manifest in _manifests(self.example / file):
            await _created(self.cluster, kinds[unstructured.kind(manifest)], manifest, namespace=self.namespace)

    def kinds(self) -> list[ResourceInfo]:
        """The example's own kinds."""
        return [_resource_of(manifest) for manifest in _manifests(self.example / _CRD_FILE)]

    def requests(self) -> list[Request]:
        """What Metaloop asked of the API server, by the server's own account."""
        return self.ground.audit.ours_since(0)

    async def hook_calls(self) -> int:
        """How often the hooks were called, as the hook gateway counts it."""
        async with httpx.AsyncClient(trust_env=False) as client:
            metrics = (await client.get(self.stack.hookgateway.metrics_url)).text
        return sum(int(float(count)) for count in _HOOK_CALLS.findall(metrics))


@asynccontextmanager
async def raised(folder: Path, *, example: Path, namespace: str) -> AsyncIterator[World]:
    """The world, ready for the story, for as long as the block lasts."""
    if not (example / "hook.py").exists():
        raise DevkitError(f"there is no example in {example}: run this from the root of the repository, or name it with --example")
    programs = await ensure()
    async with AsyncExitStack() as parts:
        with console.progress("starting etcd, kube-apiserver, kube-controller-manager, nats-server") as progress:
            ground = await parts.enter_async_context(Ground.start(programs, folder))
            progress.done("control plane ready, Metaloop's CRDs installed")
        with console.progress("starting watcher, hookgateway, two reconcilers, and the example's hook") as progress:
            stack = await parts.enter_async_context(ground.stack(reconcilers=2))
            world = await parts.enter_async_context(furnished(ground, stack, example=example, namespace=namespace))
            progress.done("Metaloop ready, the example's controller installed")
        yield world


@asynccontextmanager
async def furnished(ground: Ground, stack: Stack, *, example: Path, namespace: str) -> AsyncIterator[World]:
    """A world on what is running already, with the example's hook, kinds and controllers, for as long as the block lasts."""
    async with _hook(example, ground.workdir) as hook_url:
        await _install_kinds(ground.cluster, example, namespace)
        controllers = [_served_at(hook_url, manifest) for manifest in _manifests(example / _CONTROLLER_FILE)]
        for controller in controllers:
            await ground.cluster.create(_CONTROLLERS[unstructured.kind(controller)], controller)
        try:
            yield World(ground=ground, stack=stack, example=example, namespace=namespace)
        finally:
            for controller in controllers:
                await ground.cluster.delete(_CONTROLLERS[unstructured.kind(controller)], "", unstructured.name(controller))


@asynccontextmanager
async def _hook(example: Path, folder: Path) -> AsyncIterator[str]:
    """Where the example's hooks are served, by their own program."""
    folder = private_folder(folder, f"hook-{example.name}")

    def program(port: int) -> Program:
        return Program(
            name="hook",
            argv=(sys.executable, str(example.absolute() / "hook.py"), str(port)),
            ready=probes.tcp_accepts(LOOPBACK, port),
            folder=folder,
        )

    async with group() as daemons:
        _, port = await start_on_free_port(daemons, program)
        yield f"http://{LOOPBACK}:{port}"


async def _install_kinds(cluster: Cluster, example: Path, namespace: str) -> None:
    async with asyncio.TaskGroup() as tasks:
        for manifest in _manifests(example / _CRD_FILE):
            tasks.create_task(install(cluster, manifest))
        tasks.create_task(_created(cluster, NAMESPACES, named(NAMESPACES, namespace), namespace=""))


async def _created(cluster: Cluster, resource: ResourceInfo, manifest: JsonObject, *, namespace: str) -> None:
    """An object is there; one that was there before stays as it is."""
    try:
        await cluster.create(resource, manifest, namespace=unstructured.namespace(manifest) or namespace)
    except ApiRefused as refusal:
        if refusal.code != _CONFLICT:
            raise


def _served_at(base: str, controller: JsonObject) -> JsonObject:
    """A controller whose webhooks have their paths at `base`."""
    spec = unstructured.child_object(controller, "spec")
    hooks: JsonObject = {}
    for name, hook in unstructured.child_object(spec, "hooks").items():
        webhook = unstructured.child_object(hook, "webhook") if is_object(hook) else {}
        hooks[name] = {"webhook": {**webhook, "url": _HOST_AND_PORT.sub(base, unstructured.text(webhook, "url"))}}
    return {**controller, "spec": {**spec, "hooks": hooks}}


def _resource_of(crd: JsonObject) -> ResourceInfo:
    spec = unstructured.child_object(crd, "spec")
    names = unstructured.child_object(spec, "names")
    return ResourceInfo(
        api_version=f"{spec['group']}/v1",
        resource=unstructured.text(names, "plural"),
        kind=unstructured.text(names, "kind"),
        namespaced=spec["scope"] == "Namespaced",
        has_status=True,
    )


def _manifests(file: Path) -> Iterator[JsonObject]:
    """The manifests of a file; none where there is no such file."""
    if file.exists():
        yield from yaml.safe_load_all(file.read_text())
