"""The system under test of a scenario: a fresh cluster with an audit log, the services, and a webhook process."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.hook_process import HookProcess
from bench.profiling import sampled
from bench.run import Run
from bench.usage import Usage, usage_of
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.devkit.stack import Stack
from metaloop.devkit.testbed.audit import AuditLog
from metaloop.devkit.testbed.cluster import COMPONENTS, COMPOSITES, MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import Platform, install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, map_controller, parent, parent_resource
from metaloop.devkit.workdir import run_folder

NAMESPACE = "bench"
PARENTS = parent_resource("things")

_QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Everything that runs."""

    platform: Platform
    stack: Stack
    hook: HookProcess

    @staticmethod
    @asynccontextmanager
    async def start(run: Run, *, settings: Mapping[str, str] | None = None, reconcilers: int = 2) -> AsyncIterator["System"]:
        """A system without controllers, for as long as the block lasts."""
        settings = {"LOG_LEVEL": "warning", **(settings or {})}
        with run_folder() as folder:
            async with (
                _ground(run, folder) as platform,
                HookProcess.start(folder) as hook,
                platform.stack(settings=settings, reconcilers=reconcilers) as stack,
                sampled(stack.services, into=run.profiles),
            ):
                yield System(platform=platform, stack=stack, hook=hook)

    @property
    def cluster(self) -> Cluster:
        """A client of the API server."""
        return self.platform.cluster

    @property
    def audit(self) -> AuditLog:
        """The requests that the API server answered."""
        return self.platform.audit

    def usage(self) -> Usage:
        """What every process has used so far."""
        services = [service.daemon for service in self.stack.services]
        return usage_of([*self.platform.plane.daemons, self.platform.broker.daemon, self.hook.daemon, *services])

    async def create_controller(self, **spec: object) -> None:
        """Create the scenario's CompositeController: its children are ConfigMaps, updated in place."""
        manifest = composite("bench", parent=PARENTS, hook_url=self.hook.sync_url, children=[child_rule()], **spec)
        await self.cluster.create(COMPOSITES, manifest)

    async def create_map_controller(self) -> None:
        """Create the scenario's MapController: ConfigMaps are mapped to ConfigMaps, which are updated in place."""
        await self.cluster.create(MAPS, map_controller("bench", parent=PARENTS, hook_url=self.hook.map_url))

    async def create_component_controller(self, **spec: JsonValue) -> None:
        """Create the scenario's ComponentController."""
        own: JsonObject = {
            "prefix": "bench.example.com",
            "parentResource": {"apiVersion": PARENTS.api_version, "resource": PARENTS.resource},
            "generator": {"webhook": {"url": self.hook.generate_url}},
        }
        manifest: JsonObject = {
            "apiVersion": COMPONENTS.api_version,
            "kind": COMPONENTS.kind,
            "metadata": {"name": "bench"},
            "spec": {**own, **spec},
        }
        await self.cluster.create(COMPONENTS, manifest)

    async def quiet(self) -> None:
        """Wait until the hook was not called for a second: what was left to do after convergence is done."""
        seen, now = -1, len(await self.hook.calls())
        while seen != now:
            await asyncio.sleep(_QUIET_SECONDS)
            seen, now = now, len(await self.hook.calls())


@asynccontextmanager
async def _ground(run: Run, folder: Path) -> AsyncIterator[Platform]:
    """A cluster with the bench's namespace and kind of parent, and a broker."""
    async with Platform.start(run.assets, folder) as platform:
        await platform.cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await install_parent(platform.cluster, PARENTS)
        await _until_creates_are_not_held_back(platform.cluster)
        yield platform


async def _until_creates_are_not_held_back(cluster: Cluster) -> None:
    """Wait until the parents' CRD is two seconds old.

    Until then the API server holds back each create of the kind, so that its replicas learn of the CRD. That is not
    our time, and it would be in the figures of some runs only.
    """
    rehearsal = dumps(parent(PARENTS, "rehearsal", namespace=NAMESPACE, spec={}))
    await cluster.request("POST", PARENTS.collection_path(NAMESPACE), body=rehearsal, params={"dryRun": "All"})
