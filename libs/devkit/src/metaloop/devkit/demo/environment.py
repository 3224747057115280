"""What a scenario runs in: a cluster, Metaloop, and the hook and controllers of an example."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
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
from metaloop.devkit.testbed.builtin import CLAIMS, SECRETS, SERVICES, STATEFUL_SETS, named
from metaloop.devkit.testbed.cluster import COMPONENTS, COMPOSITES, CONFIG_MAPS, DECORATORS, MAPS, NAMESPACES, ApiRefused, Cluster
from metaloop.devkit.testbed.lab import Platform, install
from metaloop.devkit.workdir import private_folder

_CRD_FILE = "crd.yaml"
_CONTROLLER_FILE = "controller.yaml"
_CONFLICT = 409
_CONTROLLERS = {resource.kind: resource for resource in (COMPOSITES, DECORATORS, MAPS, COMPONENTS)}
_BUILTIN = {resource.kind: resource for resource in (NAMESPACES, CONFIG_MAPS, SECRETS, SERVICES, STATEFUL_SETS, CLAIMS)}
_HOOK_CALLS = re.compile(r"^metacontroller_(?:sync|finalize|customize)_requests_total\{.*\} ([0-9.e+]+)$", re.MULTILINE)
_HOST_AND_PORT = re.compile(r"^http://[^/]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The running parts."""

    platform: Platform
    stack: Stack
    example: Path
    namespace: str
    """The namespace of objects whose manifests name none."""

    @property
    def cluster(self) -> Cluster:
        """A client of the cluster, with the rights of its user."""
        return self.platform.cluster

    async def apply(self, file: str) -> None:
        """Create the objects of one of the example's files, unless they exist."""
        kinds = {**_BUILTIN, **{resource.kind: resource for resource in self.kinds()}}
        for manifest in _manifests(self.example / file):
            await _created(self.cluster, kinds[unstructured.kind(manifest)], manifest, namespace=self.namespace)

    def kinds(self) -> list[ResourceInfo]:
        """The kinds that the example defines."""
        return [_resource_of(manifest) for manifest in _manifests(self.example / _CRD_FILE)]

    async def requests(self) -> list[Request]:
        """Metaloop's requests to the API server, from the server's audit log."""
        return await self.platform.audit.ours_since(0)

    async def hook_calls(self) -> int:
        """How many hook calls the hook gateway has counted."""
        async with httpx.AsyncClient(trust_env=False) as client:
            metrics = (await client.get(self.stack.hookgateway.metrics_url)).text
        return sum(int(float(count)) for count in _HOOK_CALLS.findall(metrics))


@asynccontextmanager
async def start_environment(folder: Path, *, example: Path, namespace: str) -> AsyncIterator[Environment]:
    """A new cluster with Metaloop and the example, for as long as the block lasts."""
    if not (example / "hook.py").exists():
        raise DevkitError(f"there is no example in {example}: run this from the root of the repository, or name it with --example")
    programs = await ensure()
    async with AsyncExitStack() as parts:
        with console.progress("starting etcd, kube-apiserver, kube-controller-manager, nats-server") as progress:
            platform = await parts.enter_async_context(Platform.start(programs, folder))
            progress.done("control plane ready, Metaloop's CRDs installed")
        with console.progress("starting watcher, hookgateway, two reconcilers, and the example's hook") as progress:
            stack = await parts.enter_async_context(platform.stack(reconcilers=2))
            environment = await parts.enter_async_context(install_example(platform, stack, example=example, namespace=namespace))
            await platform.show_kinds_to_controllers()
            progress.done("Metaloop ready, the example's controller installed")
        yield environment


@asynccontextmanager
async def install_example(platform: Platform, stack: Stack, *, example: Path, namespace: str) -> AsyncIterator[Environment]:
    """The example's hook, kinds and controllers on services that already run, for as long as the block lasts."""
    async with _hook(example, platform.workdir) as hook_url:
        await _install_kinds(platform.cluster, example, namespace)
        controllers = [_served_at(hook_url, manifest) for manifest in _manifests(example / _CONTROLLER_FILE)]
        async with _installed_controllers(platform.cluster, controllers):
            yield Environment(platform=platform, stack=stack, example=example, namespace=namespace)


@asynccontextmanager
async def _installed_controllers(cluster: Cluster, controllers: Sequence[JsonObject]) -> AsyncIterator[None]:
    for controller in controllers:
        await cluster.create(_CONTROLLERS[unstructured.kind(controller)], controller)
    try:
        yield
    finally:
        for controller in controllers:
            await cluster.delete(_CONTROLLERS[unstructured.kind(controller)], "", unstructured.name(controller))


@asynccontextmanager
async def _hook(example: Path, folder: Path) -> AsyncIterator[str]:
    """The address of the example's hooks, served by the example's own program."""
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
    """Create an object; if it exists, it stays as it is."""
    try:
        await cluster.create(resource, manifest, namespace=unstructured.namespace(manifest) or namespace)
    except ApiRefused as refusal:
        if refusal.code != _CONFLICT:
            raise


def _served_at(base: str, controller: JsonObject) -> JsonObject:
    """The controller with `base` as host and port of its webhooks."""
    return {**controller, "spec": _with_host(base, unstructured.child_object(controller, "spec"))}


def _with_host(base: str, fields: JsonObject) -> JsonObject:
    """`fields` with `base` as host and port of every webhook in them."""
    changed: JsonObject = {}
    for name, value in fields.items():
        if name == "webhook" and is_object(value):
            changed[name] = {**value, "url": _HOST_AND_PORT.sub(base, unstructured.text(value, "url"))}
        else:
            changed[name] = _with_host(base, value) if is_object(value) else value
    return changed


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
    """The manifests of a file; none if there is no such file."""
    if file.exists():
        yield from yaml.safe_load_all(file.read_text())
