"""Tells a tale: scene by scene, with everything that it needs started before and summed up after."""

import time
from pathlib import Path

import typer

from metaloop.devkit.console import duration
from metaloop.devkit.demo.kubelet import Kubelet
from metaloop.devkit.demo.sight import Sight
from metaloop.devkit.demo.stage import S, Stage, Tale
from metaloop.devkit.demo.view import View, opened_view
from metaloop.devkit.demo.world import World, raised
from metaloop.devkit.workdir import run_folder

NAMESPACE = "demo"


async def tell(tale: Tale[S], example: Path) -> None:
    """Start everything, let the story happen, and sum it up."""
    began = time.monotonic()
    with run_folder() as folder:
        async with raised(folder, example=example, namespace=NAMESPACE) as world:
            with opened_view() as view:
                sight = await play(tale, world, view)
            typer.echo(await _summary(world, sight, took=time.monotonic() - began))


async def play(tale: Tale[S], world: World, view: View) -> Sight:
    """What there is at the story's good end; raises DevkitError where it comes to no good end."""
    kubelet = Kubelet(cluster=world.cluster, namespace=world.namespace)
    async with kubelet.at_work():
        stage = Stage(world=world, view=view, look=tale.look, kubelet=kubelet)
        for scene in tale.scenes:
            await scene(stage)
        return await tale.look(world)


async def _summary(world: World, sight: Sight, *, took: float) -> str:
    requests = world.requests()
    writes, reads = sum(request.is_write for request in requests), sum(request.is_read for request in requests)
    return "\n".join(
        [
            "",
            f"  objects      {sight.counts}",
            f"  hook calls   {await world.hook_calls()}",
            f"  API writes   {writes} by Metaloop, counted in the API server's audit log ({reads} reads)",
            f"  time         {duration(took)}",
        ]
    )
