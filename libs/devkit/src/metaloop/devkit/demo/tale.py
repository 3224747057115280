"""The story, scene by scene; each ends when the cluster is as it should be, or the demo has failed."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import typer

from metaloop.devkit.demo.sight import HELLOS, Sight, look
from metaloop.devkit.demo.view import View, opened_view
from metaloop.devkit.demo.world import NAMESPACE, World, raised
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.tell import duration
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.workdir import run_folder

_NAMES = tuple(f"hello-{number:02}" for number in range(1, 21))
_CHANGED, _ROBBED, _DELETED = "hello-07", "hello-12", "hello-20"
_PLANETS = ("Mercury", "Venus", "Mars", "Jupiter", "Saturn")

# Kubernetes' garbage collector takes up to 40 s to notice a new kind; everything else takes seconds at most.
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.2


async def tell_story(example: Path) -> None:
    """Start everything, let the story happen, and sum it up."""
    began = time.monotonic()
    with run_folder() as folder:
        async with raised(folder, example=example) as world:
            await _play(world)
            typer.echo(await _summary(world, took=time.monotonic() - began))


async def _play(world: World) -> None:
    with opened_view() as view:
        stage = _Stage(world=world, view=view)
        for scene in _SCENES:
            await scene(stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """The world, and whoever watches it."""

    world: World
    view: View

    async def until(self, holds: Callable[[Sight], bool]) -> Sight:
        """The first sight for which it holds; all sights on the way are shown."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            sight = await look(self.world.cluster, NAMESPACE)
            self.view.show(sight)
            if holds(sight):
                return sight
            if time.monotonic() > deadline:
                raise DevkitError(f"the cluster is still not as it should be after {_PATIENCE_SECONDS:g} s")
            await asyncio.sleep(_LOOK_SECONDS)

    async def greet(self, name: str, who: str) -> None:
        """Change whom a parent greets."""
        await self.world.cluster.patch(HELLOS, NAMESPACE, name, {"spec": {"who": who}})


async def _create(stage: _Stage) -> None:
    stage.view.begin(f"{len(_NAMES)} parents are created")
    async with asyncio.TaskGroup() as tasks:
        for name in _NAMES:
            tasks.create_task(stage.world.create_hello(name))
    sight = await stage.until(lambda sight: sight.is_converged)
    stage.view.end(f"each has its three children: {sight.children} in all, and its status counts them")


async def _change(stage: _Stage) -> None:
    stage.view.begin(f"{_CHANGED} is to greet the Moon")
    await stage.greet(_CHANGED, "Moon")
    sight = await stage.until(lambda sight: sight.hello(_CHANGED).who == "Moon" and sight.is_converged)
    stage.view.end(f"its children follow: {', '.join(greeting.text for greeting in sight.hello(_CHANGED).greetings)}")


async def _repair(stage: _Stage) -> None:
    child = f"{_ROBBED}-french"
    stage.view.begin(f"somebody deletes the child {child} by hand")
    before = (await look(stage.world.cluster, NAMESPACE)).hello(_ROBBED).greetings
    await stage.world.cluster.delete(CONFIG_MAPS, NAMESPACE, child)
    await stage.until(lambda sight: sight.is_converged and sight.hello(_ROBBED).greetings != before)
    stage.view.end("it is back")


async def _kill(stage: _Stage) -> None:
    victim = stage.world.stack.reconcilers[0]
    changes = [(name, planet) for planet in _PLANETS for name in _NAMES]
    stage.view.begin(f"{victim.name} is killed with SIGKILL in the middle of {len(changes)} changes")
    await _apply(stage, changes[: len(changes) // 2])
    pid = victim.pid
    os.kill(pid, signal.SIGKILL)
    await _apply(stage, changes[len(changes) // 2 :])
    await stage.until(lambda sight: sight.is_converged and all(hello.who == _PLANETS[-1] for hello in sight.hellos))
    stage.view.end(f"nothing is lost: all parents greet {_PLANETS[-1]}, and a new {victim.name} runs in place of process {pid}")


async def _apply(stage: _Stage, changes: list[tuple[str, str]]) -> None:
    """A burst: one change after the other for each parent, all parents side by side."""
    async with asyncio.TaskGroup() as tasks:
        for name in random.sample(_NAMES, len(_NAMES)):
            tasks.create_task(_greet_in_turn(stage, name, [planet for changed, planet in changes if changed == name]))


async def _greet_in_turn(stage: _Stage, name: str, planets: list[str]) -> None:
    for planet in planets:
        await stage.greet(name, planet)


async def _delete(stage: _Stage) -> None:
    stage.view.begin(f"{_DELETED} is deleted (the garbage collector may take 40 s to notice so new a kind)")
    await stage.world.cluster.delete(HELLOS, NAMESPACE, _DELETED)
    sight = await stage.until(lambda sight: sight.is_converged and sight.children == 3 * (len(_NAMES) - 1))
    stage.view.end(f"its children are gone too: {len(sight.hellos)} parents and {sight.children} children are left")


_SCENES: tuple[Callable[[_Stage], Awaitable[None]], ...] = (_create, _change, _repair, _kill, _delete)


async def _summary(world: World, *, took: float) -> str:
    sight = await look(world.cluster, NAMESPACE)
    requests = world.requests()
    writes, reads = sum(request.is_write for request in requests), sum(request.is_read for request in requests)
    return "\n".join(
        [
            "",
            f"  objects      {len(sight.hellos)} parents, {sight.children} children, all as they should be",
            f"  hook calls   {await world.hook_calls()}",
            f"  API writes   {writes} by Metaloop, counted in the API server's audit log ({reads} reads)",
            f"  time         {duration(took)}",
        ]
    )
