"""Hello: parents converge, children follow and come back, a reconciler is killed, and nothing is lost."""

import asyncio
import os
import random
import signal

from metaloop.common.json import JsonObject
from metaloop.devkit.demo.stage import Stage, Tale
from metaloop.devkit.demo.tales.hellos import HELLOS, Hellos, look
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_NAMES = tuple(f"hello-{number:02}" for number in range(1, 21))
_CHANGED, _ROBBED, _DELETED = "hello-07", "hello-12", "hello-20"
_PLANETS = ("Mercury", "Venus", "Mars", "Jupiter", "Saturn")


async def _create(stage: Stage[Hellos]) -> None:
    stage.view.begin(f"{len(_NAMES)} parents are created")
    async with asyncio.TaskGroup() as tasks:
        for name in _NAMES:
            tasks.create_task(_new(stage, name))
    sight = await stage.until(lambda sight: sight.is_converged)
    stage.view.end(f"each has its three children: {sight.children} in all, and its status counts them")


async def _change(stage: Stage[Hellos]) -> None:
    stage.view.begin(f"{_CHANGED} is to greet the Moon")
    await _greet(stage, _CHANGED, "Moon")
    sight = await stage.until(lambda sight: sight.hello(_CHANGED).who == "Moon" and sight.is_converged)
    stage.view.end(f"its children follow: {', '.join(greeting.text for greeting in sight.hello(_CHANGED).greetings)}")


async def _repair(stage: Stage[Hellos]) -> None:
    child = f"{_ROBBED}-french"
    stage.view.begin(f"somebody deletes the child {child} by hand")
    before = (await look(stage.world)).hello(_ROBBED).greetings
    await stage.delete(CONFIG_MAPS, child)
    await stage.until(lambda sight: sight.is_converged and sight.hello(_ROBBED).greetings != before)
    stage.view.end("it is back")


async def _kill(stage: Stage[Hellos]) -> None:
    victim = stage.world.stack.reconcilers[0]
    changes = [(name, planet) for planet in _PLANETS for name in _NAMES]
    stage.view.begin(f"{victim.name} is killed with SIGKILL in the middle of {len(changes)} changes")
    await _apply(stage, changes[: len(changes) // 2])
    pid = victim.pid
    os.kill(pid, signal.SIGKILL)
    await _apply(stage, changes[len(changes) // 2 :])
    await stage.until(lambda sight: sight.is_converged and all(hello.who == _PLANETS[-1] for hello in sight.hellos))
    stage.view.end(f"nothing is lost: all parents greet {_PLANETS[-1]}, and a new {victim.name} runs in place of process {pid}")


async def _apply(stage: Stage[Hellos], changes: list[tuple[str, str]]) -> None:
    """A burst: one change after the other for each parent, all parents side by side."""
    async with asyncio.TaskGroup() as tasks:
        for name in random.sample(_NAMES, len(_NAMES)):
            tasks.create_task(_greet_in_turn(stage, name, [planet for changed, planet in changes if changed == name]))


async def _greet_in_turn(stage: Stage[Hellos], name: str, planets: list[str]) -> None:
    for planet in planets:
        await _greet(stage, name, planet)


async def _delete(stage: Stage[Hellos]) -> None:
    stage.view.begin(f"{_DELETED} is deleted (the garbage collector may take 40 s to notice so new a kind)")
    await stage.delete(HELLOS, _DELETED)
    sight = await stage.until(lambda sight: sight.is_converged and sight.children == 3 * (len(_NAMES) - 1))
    stage.view.end(f"its children are gone too: {len(sight.hellos)} parents and {sight.children} children are left")


async def _new(stage: Stage[Hellos], name: str) -> None:
    hello: JsonObject = {"apiVersion": "example.com/v1", "kind": "Hello", "metadata": {"name": name}, "spec": {"who": "World"}}
    await stage.cluster.create(HELLOS, hello, namespace=stage.world.namespace)


async def _greet(stage: Stage[Hellos], name: str, who: str) -> None:
    await stage.change(HELLOS, name, {"spec": {"who": who}})


TALE = Tale(
    about="parents converge, children follow and come back, a reconciler is killed, and nothing is lost",
    look=look,
    scenes=(_create, _change, _repair, _kill, _delete),
)
