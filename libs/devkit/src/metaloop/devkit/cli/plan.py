"""`metaloop plan`: what a sync of a live parent would write."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from metaloop.common.api.instructions import is_paused
from metaloop.common.http.peer import Peer
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.telemetry import configure_logging
from metaloop.devkit import console
from metaloop.devkit.dryrun import ClusterSnapshot, DryRun, dry_run, running_schemas
from metaloop.devkit.dryrun.controllers import Candidate, find_by_controller, find_by_parent, served_by
from metaloop.devkit.dryrun.gateway import GatewayAddress, local_gateway
from metaloop.devkit.dryrun.show import as_json, print_text
from metaloop.devkit.workdir import run_folder
from metaloop.reconciler.hook_caller import HookCaller
from metaloop.reconciler.strategies import Strategies


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of the command, as `metaloop plan --help` explains them."""

    target: str
    parent: str
    namespace: str
    controller: str
    kubeconfig: str
    gateway: GatewayAddress | None
    apply_strategy: str
    field_manager: str
    as_json: bool


async def plan(options: PlanOptions) -> None:
    """Print what a sync of one parent would write."""
    configure_logging("plan", level="error", form="console")
    async with KubeClient.connect(options.kubeconfig) as kube, _gateway(options) as gateway:
        candidate = await _find(kube, options)
        snapshot = ClusterSnapshot(kube, await served_by(kube), field_manager=options.field_manager)
        granted = await snapshot.observed(candidate.instance, candidate.controller, candidate.info, candidate.parent)
        with closing(Peer(gateway.url)) as peer:
            async with running_schemas(kube) as schemas:
                strategies = Strategies(schemas=schemas, default=options.apply_strategy)
                hooks = HookCaller(peer, token=gateway.token)
                result = await dry_run(granted, subscriptions=snapshot, hooks=hooks, strategies=strategies)
    _print(result, candidate, options)


async def _find(kube: KubeClient, options: PlanOptions) -> Candidate:
    if options.parent:
        return await find_by_controller(kube, options.target, options.parent)
    return await find_by_parent(kube, options.target, namespace=options.namespace, controller=options.controller)


@asynccontextmanager
async def _gateway(options: PlanOptions) -> AsyncIterator[GatewayAddress]:
    if options.gateway is not None:
        yield options.gateway
        return
    console.message("starting a hook gateway")
    with run_folder() as folder:
        async with local_gateway(Path(folder), kubeconfig=options.kubeconfig) as gateway:
            yield gateway


def _print(result: DryRun, candidate: Candidate, options: PlanOptions) -> None:
    controller, parent = str(candidate.instance.controller.id), unstructured.describe(candidate.parent)
    paused = is_paused(candidate.parent) or is_paused(candidate.controller)
    if options.as_json:
        title: JsonObject = {"controller": controller, "parent": parent, "paused": paused}
        typer.echo(dumps(as_json(result, title=title)).decode())
    else:
        when = ", once it is no longer paused" if paused else ""
        print_text(result, title=f"{controller}: {parent}{when}", console=Console())
