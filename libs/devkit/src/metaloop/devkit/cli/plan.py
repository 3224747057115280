"""`metaloop plan`: what a sync of a live parent would write."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console

from metaloop.common.api.instructions import is_paused
from metaloop.common.http.peer import Peer
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.cluster_uid import cluster_uid
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects import unstructured
from metaloop.common.observation import Granted, Observation
from metaloop.common.telemetry import configure_logging
from metaloop.devkit import console
from metaloop.devkit.dryrun import ClusterSnapshot, DryRun, Reads, dry_run, running_schemas
from metaloop.devkit.dryrun.controllers import Candidate, find_by_controller, find_by_parent, served_by
from metaloop.devkit.dryrun.gateway import GatewayAddress, local_gateway
from metaloop.devkit.dryrun.show import as_json, print_text
from metaloop.devkit.errors import NothingToPlan
from metaloop.devkit.workdir import run_folder
from metaloop.reconciler.cluster_reader import ClusterReader
from metaloop.reconciler.hook_caller import HookCaller
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import part_of

_CONCURRENT_READS = 8


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
    part: str = ""
    """Plan only this part: the name of its input, with its namespace or without, or its key. Empty for a sample."""
    parts: int = 5
    """How many parts to plan at most; 0 for all."""


async def plan(options: PlanOptions) -> None:
    """Print what a sync of one parent would write."""
    configure_logging("plan", level="error", form="console")
    async with KubeClient.connect(options.kubeconfig) as kube, _gateway(options) as gateway:
        candidate = await _find(kube, options)
        snapshot = ClusterSnapshot(kube, await served_by(kube), field_manager=options.field_manager)
        whole = await snapshot.observed(candidate.instance, candidate.controller, candidate.info, candidate.parent)
        grants = _chosen_parts(snapshot, options) or [whole]
        with closing(Peer(gateway.url)) as peer:
            async with running_schemas(kube) as schemas:
                reads = Reads(
                    api=kube,
                    subscriptions=snapshot,
                    hooks=HookCaller(peer, token=gateway.token),
                    strategies=Strategies(schemas=schemas, default=options.apply_strategy),
                    cluster=ClusterReader(Discovery(kube), uid=await cluster_uid(kube), width=_CONCURRENT_READS),
                )
                results = [await dry_run(each, reads) for each in grants]
    _print([PlannedPart(part_of(each.observation), result) for each, result in zip(grants, results, strict=True)], candidate, options)
    if left_out := len(snapshot.parts) - len(grants) if snapshot.parts else 0:
        console.message(f"{left_out} other parts were not planned: --parts 0 plans all, --part NAME one")


def _chosen_parts(snapshot: ClusterSnapshot, options: PlanOptions) -> list[Granted]:
    """The parts to plan; none where the parent has none. Raises NothingToPlan for a part that is not there."""
    if not options.part:
        return [snapshot.granted(key) for key in snapshot.parts[: options.parts or None]]
    granted = (snapshot.granted(key) for key in snapshot.parts)
    found = [each for each in granted if options.part in _names_of(each.observation)]
    if not found:
        raise NothingToPlan(f"the parent has no part {options.part}")
    return found


def _names_of(observation: Observation) -> set[str]:
    """What a part may be called: its key, and its input's name with the namespace and without."""
    inputs = [obj for group in observation.inputs for obj in group.objects]
    qualified = {f"{unstructured.namespace(obj)}/{unstructured.name(obj)}" for obj in inputs}
    return {observation.part, *qualified, *map(unstructured.name, inputs)}


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


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """The plan of a parent, or of the part with this name."""

    part: str
    result: DryRun


def _print(plans: list[PlannedPart], candidate: Candidate, options: PlanOptions) -> None:
    controller, parent = str(candidate.instance.controller.id), unstructured.describe(candidate.parent)
    paused = is_paused(candidate.parent) or is_paused(candidate.controller)
    if options.as_json:
        title: JsonObject = {"controller": controller, "parent": parent, "paused": paused}
        whole = not plans[0].part
        parts: list[JsonValue] = [as_json(each.result, title={"part": each.part}) for each in plans]
        typer.echo(dumps(as_json(plans[0].result, title=title) if whole else {**title, "parts": parts}).decode())
        return
    when = ", once it is no longer paused" if paused else ""
    for each in plans:
        about = f", {each.part}" if each.part else ""
        print_text(each.result, title=f"{controller}: {parent}{about}{when}", console=Console())
