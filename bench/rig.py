"""What one scenario runs on: a fresh cluster with an audit log, the services, the webhook in its own process, and a controller."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.hookprocess import HookProcess
from bench.profiling import sampled
from bench.usage import Usage, usage_of
from metaloop.common.json import dumps
from metaloop.devkit.stack import Stack
from metaloop.devkit.testbed.audit import AuditLog
from metaloop.devkit.testbed.cluster import COMPOSITES, NAMESPACES, Cluster
from metaloop.devkit.testbed.lab import Ground, install_parent
from metaloop.devkit.testbed.manifests import child_rule, composite, parent, parent_resource
from metaloop.devkit.workdir import run_folder

NAMESPACE = "bench"
PARENTS = parent_resource("things")

_QUIET_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """All that runs."""

    ground: Ground
    stack: Stack
    hook: HookProcess

    @staticmethod
    @asynccontextmanager
    async def start(
        assets: Path, *, settings: Mapping[str, str] | None = None, profiles: Path | None = None, reconcilers: int = 2
    ) -> AsyncIterator["Rig"]:
        """A rig without controllers, for as long as the block lasts; its services are sampled into a folder where one is given."""
        with run_folder() as folder:
            async with Ground.start(assets, folder) as ground, HookProcess.start(folder) as hook:
                await ground.cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
                await install_parent(ground.cluster, PARENTS)
                await _past_first_seconds(ground.cluster)
                async with (
                    ground.stack(settings={"LOG_LEVEL": "warning", **(settings or {})}, reconcilers=reconcilers) as stack,
                    sampled(stack.services, into=profiles),
                ):
                    yield Rig(ground=ground, stack=stack, hook=hook)

    @property
    def cluster(self) -> Cluster:
        """The way in."""
        return self.ground.cluster

    @property
    def audit(self) -> AuditLog:
        """What the API server wrote down."""
        return self.ground.audit

    def usage(self) -> Usage:
        """What everything that runs has used so far."""
        services = [service.daemon for service in self.stack.services]
        return usage_of([*self.ground.plane.daemons, self.ground.broker.daemon, self.hook.daemon, *services])

    async def controller(self, **spec: object) -> None:
        """The scenario's controller is there: its children are ConfigMaps, updated in place."""
        manifest = composite("bench", parent=PARENTS, hook_url=self.hook.sync_url, children=[child_rule()], **spec)
        await self.cluster.create(COMPOSITES, manifest)

    async def quiet(self) -> None:
        """Nothing, once the hook has not been asked for a while: what is left to do after convergence is done."""
        seen, now = -1, len(await self.hook.calls())
        while seen != now:
            await asyncio.sleep(_QUIET_SECONDS)
            seen, now = now, len(await self.hook.calls())


async def _past_first_seconds(cluster: Cluster) -> None:
    """Nothing, once the parents' kind isn't new any more.

    In the first two seconds of a CRD's life the API server holds back each create of its kind for two seconds, so that its replicas learn of the CRD:
    that is none of ours, and would be in the figures of one run and not of another.
    """
    rehearsed = dumps(parent(PARENTS, "rehearsed", namespace=NAMESPACE, spec={}))
    await cluster.request("POST", PARENTS.collection_path(NAMESPACE), body=rehearsed, params={"dryRun": "All"})
