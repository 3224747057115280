"""A run's world: the cluster, the bus, the webhooks, and the processes of the three services over them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Final

from metaloop.common.api.kinds import KINDS
from metaloop.common.api.revision import REVISIONS
from metaloop.common.json import JsonObject, is_object
from metaloop.common.kube.client import CONNECTIONS, KubeClient
from metaloop.common.kube.events import EVENTS
from metaloop.common.kube.request_limiter import RequestLimiter
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.service import Service
from metaloop.hookgateway import app as gateway_app
from metaloop.hookgateway.settings import Settings as GatewaySettings
from metaloop.hookgateway.watch_objects import NoCluster
from metaloop.reconciler import app as reconciler_app
from metaloop.reconciler.settings import Settings as ReconcilerSettings
from metaloop.simulation.bus.broker import Broker
from metaloop.simulation.bus.links import MemoryWatcherLink, MemoryWorkerLink
from metaloop.simulation.cluster.objects import merge_patched
from metaloop.simulation.cluster.server import ApiServer
from metaloop.simulation.cluster.store import Key
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.gateway import GatewayPeer
from metaloop.simulation.history import History
from metaloop.simulation.network import Network, Port
from metaloop.simulation.processes import Process
from metaloop.simulation.resources import CONFIG_MAPS, NAMESPACE, ROUTES, THINGS
from metaloop.simulation.webhooks import Webhooks
from metaloop.watcher import app as watcher_app
from metaloop.watcher.leader import LEASES
from metaloop.watcher.served import CRDS
from metaloop.watcher.settings import WatcherSettings

SERVED: Final = (THINGS, ROUTES, CONFIG_MAPS, *(kind.resource for kind in KINDS.values()), REVISIONS, LEASES, EVENTS, CRDS)

_LEADER_LEASE_SECONDS: Final = 6
_CHECK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many processes of each service run."""

    watchers: int = 2
    reconcilers: int = 2
    gateways: int = 1
    shards: int = 1
    """How many shards the watchers share, in turn."""


_WATCHER_SETTINGS: Final = WatcherSettings(leader_election=True, leader_lease_seconds=_LEADER_LEASE_SECONDS, leader_namespace=NAMESPACE)
_RECONCILER_SETTINGS: Final = ReconcilerSettings()
_GATEWAY_SETTINGS: Final = GatewaySettings()


@dataclass(kw_only=True)
class World:
    """Everything of one run."""

    seed: str
    plan: FaultPlan
    size: Size = field(default_factory=Size)
    history: History = field(default_factory=History)
    processes: dict[str, Process] = field(default_factory=dict[str, Process])

    @cached_property
    def network(self) -> Network:
        """What lies between the parts."""
        return Network(random=Random(f"{self.seed}/network"), faults=self.plan)  # noqa: S311 - a seed decides everything

    @cached_property
    def api(self) -> ApiServer:
        """The API server."""
        return ApiServer(self.network, self.history)

    @cached_property
    def broker(self) -> Broker:
        """The broker."""
        return Broker(self.network, ack_wait_seconds=_WATCHER_SETTINGS.ack_wait_seconds)

    @cached_property
    def webhooks(self) -> Webhooks:
        """The webhooks."""
        return Webhooks(network=self.network, faults=self.plan, history=self.history)

    @property
    def watchers(self) -> list[Process]:
        """The watchers."""
        return self._named("watcher")

    @property
    def reconcilers(self) -> list[Process]:
        """The reconcilers."""
        return self._named("reconciler")

    @property
    def gateways(self) -> list[Process]:
        """The hook gateways."""
        return self._named("gateway")

    def start(self) -> None:
        """Serve the resources, and start all processes."""
        self.api.store.serve(*SERVED)
        self.plan.attach(self)
        services = {
            "gateway": (self.size.gateways, self._gateway),
            "watcher": (self.size.watchers, self._watcher),
            "reconciler": (self.size.reconcilers, self._reconciler),
        }
        for name, (count, assemble) in services.items():
            for number in range(1, count + 1):
                process = Process(f"{name}-{number}", assemble, seed=self.seed, history=self.history)
                self.processes[process.name] = process
        for process in self.processes.values():
            process.start()

    # -- what users do -------------------------------------------------------------------------------------------------

    def create(self, info: ResourceInfo, obj: JsonObject) -> JsonObject:
        """Create an object, as a user."""
        namespace = NAMESPACE if info.namespaced else ""
        self.history.note("user", f"create {info.resource} {unstructured.name(obj)}")
        return self.api.by_user(lambda: self.api.store.create(info, namespace, {"apiVersion": info.api_version, "kind": info.kind, **obj}))

    def patch(self, info: ResourceInfo, name: str, patch: JsonObject) -> JsonObject:
        """Change an object, as a user."""
        self.history.note("user", f"patch {info.resource} {name}")
        key = self.key(info, name)
        merged = merge_patched(self.api.store.get(info, key), patch)
        return self.api.by_user(lambda: self.api.store.update(info, key, merged if is_object(merged) else {}))

    def delete(self, info: ResourceInfo, name: str) -> None:
        """Delete an object, as a user."""
        self.history.note("user", f"delete {info.resource} {name}")
        self.api.by_user(lambda: self.api.store.delete(info, self.key(info, name)))

    def get(self, info: ResourceInfo, name: str) -> JsonObject | None:
        """An object as it is now."""
        return self.api.store.collections[info.id].objects.get(self.key(info, name))

    def all(self, info: ResourceInfo, labels: Mapping[str, str] | None = None) -> dict[str, JsonObject]:
        """The objects of a resource by name, those with some labels if they are given."""
        wanted = (labels or {}).items()
        objects = self.api.store.list(info)
        return {unstructured.name(obj): obj for obj in objects if wanted <= unstructured.labels(obj).items()}

    @staticmethod
    def key(info: ResourceInfo, name: str) -> Key:
        """The key of an object in the run's namespace."""
        return Key(NAMESPACE if info.namespaced else "", name)

    async def until(self, problem: Callable[[], str], *, within_seconds: float) -> str:
        """Wait until there is no problem; returns the one that is left after so long."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + within_seconds
        while (found := problem()) and loop.time() < ends:  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(_CHECK_SECONDS)
        return found

    # -- the services --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _watcher(self, service: Service, port: Port) -> AsyncIterator[None]:
        index = (int(port.process.rpartition("-")[2]) - 1) % self.size.shards
        settings = _WATCHER_SETTINGS.model_copy(update={"shard": f"{index}/{self.size.shards}"})
        link = MemoryWatcherLink(wire=self.broker.connect(port), shard=settings.share.name)
        async with watcher_app.assembled(service, settings, self._kube(port), link):
            yield

    @asynccontextmanager
    async def _reconciler(self, service: Service, port: Port) -> AsyncIterator[None]:
        peers = reconciler_app.Peers(
            link=MemoryWorkerLink(wire=self.broker.connect(port)),
            kube=self._kube(port),
            gateway=GatewayPeer(self.gateways, port, self.network),
        )
        async with reconciler_app.assembled(service, _RECONCILER_SETTINGS, peers):
            yield

    @asynccontextmanager
    async def _gateway(self, service: Service, port: Port) -> AsyncIterator[None]:
        opened = self.webhooks.opened(port)
        async with gateway_app.assembled(service, _GATEWAY_SETTINGS, NoCluster("no webhook needs one"), opened=opened):
            yield

    def _kube(self, port: Port) -> KubeClient:
        return KubeClient(self.api.transport(port), limiter=RequestLimiter(maximum=CONNECTIONS))

    def _named(self, service: str) -> list[Process]:
        return [process for name, process in self.processes.items() if name.startswith(service)]
