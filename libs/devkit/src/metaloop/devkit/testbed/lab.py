"""All of Metaloop for tests: a control plane with an audit log, NATS, the services, and a webhook."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.broker import Broker
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.manifests import crds
from metaloop.devkit.stack import Service, Stack, StackOptions
from metaloop.devkit.testbed.audit import AuditLog
from metaloop.devkit.testbed.cluster import CRDS, ApiRefused, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import crd
from metaloop.devkit.testbed.webhook import Webhook

_ALREADY_EXISTS = 409
_VIEW_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """What the services run on: a cluster with our CRDs, and the broker."""

    plane: ControlPlane
    broker: Broker
    cluster: Cluster
    audit: AuditLog
    workdir: Path

    @staticmethod
    @asynccontextmanager
    async def start(assets: Path, workdir: Path, *, connections: int = 64, store_bytes: int | None = None) -> AsyncIterator["Platform"]:
        """The platform, ready for as long as the block lasts; the broker's store may have a limit."""
        log = workdir / "audit.log"
        async with (
            ControlPlane.start(assets, workdir, audit_log=log) as plane,
            Broker.start(workdir, store_bytes=store_bytes) as broker,
            Cluster.connect(plane, connections=connections) as cluster,
        ):
            await install_crds(cluster)
            yield Platform(plane=plane, broker=broker, cluster=cluster, audit=AuditLog(log), workdir=workdir)

    async def show_kinds_to_controllers(self) -> None:
        """Let Kubernetes' controllers know all kinds that are served now; they look for new ones twice a minute."""
        await self.plane.controller_manager.kill()
        await self.plane.controller_manager.start()

    @asynccontextmanager
    async def stack(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        reconcilers: int = 2,
        watchers: Sequence[Mapping[str, str]] = ({},),
        kubeconfig: Path | None = None,
        nats_url: str = "",
    ) -> AsyncIterator[Stack]:
        """The services, ready for as long as the block lasts; `kubeconfig` and `nats_url` may lead through proxies."""
        options = StackOptions(
            kubeconfig=kubeconfig or self.plane.kubeconfig_path,
            nats_url=nats_url or self.broker.url,
            reconcilers=reconcilers,
            watchers=watchers,
            settings=settings or {},
        )
        async with Stack.start(options, self.workdir) as stack:
            yield stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The platform, the services, and a webhook in this process."""

    platform: Platform
    stack: Stack
    webhook: Webhook
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """The labels of the controllers that the services serve."""

    @property
    def cluster(self) -> Cluster:
        """A client of the cluster."""
        return self.platform.cluster

    @property
    def audit(self) -> AuditLog:
        """The audit log of the API server."""
        return self.platform.audit

    @staticmethod
    @asynccontextmanager
    async def start(assets: Path, workdir: Path, *, settings: Mapping[str, str] | None = None) -> AsyncIterator["Lab"]:
        """All of it, ready for as long as the block lasts."""
        async with Platform.start(assets, workdir) as platform, Webhook.serve() as webhook, platform.stack(settings=settings) as stack:
            yield Lab(platform=platform, stack=stack, webhook=webhook)

    async def view(self, name: str, *, of: Service | None = None) -> list[JsonObject]:
        """A debug view of a watcher, by default the first: `queue`, `leases`, `cache` and so on."""
        async with httpx.AsyncClient(trust_env=False, timeout=_VIEW_SECONDS) as client:
            return (await client.get(f"{(of or self.stack.watcher).debug_url}/{name}")).json()


async def install_crds(cluster: Cluster) -> None:
    """Install Metaloop's CRDs, and wait until they are served; existing CRDs stay as they are."""
    async with asyncio.TaskGroup() as tasks:
        for manifest in crds():
            tasks.create_task(install(cluster, manifest))


async def install_parent(cluster: Cluster, resource: ResourceInfo) -> None:
    """Install the CRD of a parent kind, and wait until it is served."""
    await install(cluster, crd(resource))


async def install(cluster: Cluster, manifest: JsonObject) -> None:
    """Install a CRD, and wait until its objects are served; an existing one stays, unless it is being deleted."""
    await eventually(lambda: _created(cluster, manifest), within_seconds=30)
    await eventually(lambda: _established(cluster, unstructured.name(manifest)), within_seconds=30)
    await eventually(lambda: _served(cluster, manifest), within_seconds=30)


async def _created(cluster: Cluster, manifest: JsonObject) -> None:
    try:
        await cluster.create(CRDS, manifest)
    except ApiRefused as refusal:
        if refusal.code != _ALREADY_EXISTS:
            raise
        found = await cluster.find(CRDS, "", unstructured.name(manifest))
        expect(
            found is not None and not unstructured.is_deleting(found), f"the former {unstructured.name(manifest)} is still being deleted"
        )


async def _established(cluster: Cluster, name: str) -> None:
    found = await cluster.get(CRDS, "", name)
    conditions = unstructured.child_object(found, "status").get("conditions")
    established = is_array(conditions) and any(
        is_object(condition) and condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions
    )
    expect(established, f"{name} is not established")


async def _served(cluster: Cluster, manifest: JsonObject) -> None:
    """Raise AssertionError until objects are served: the API server says that a CRD is established a moment before."""
    spec = unstructured.child_object(manifest, "spec")
    names = unstructured.child_object(spec, "names")
    for version in unstructured.child_objects(spec, "versions"):
        if not version.get("served"):
            continue
        resource = ResourceInfo(
            api_version=f"{unstructured.text(spec, 'group')}/{unstructured.text(version, 'name')}",
            resource=unstructured.text(names, "plural"),
            kind=unstructured.text(names, "kind"),
            namespaced=spec.get("scope") == "Namespaced",
        )
        try:
            await cluster.list(resource)
        except ApiRefused as refusal:
            raise AssertionError(str(refusal)) from refusal
