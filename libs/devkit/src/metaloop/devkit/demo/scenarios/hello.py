"""Hello: parents converge, children are updated and repaired, a reconciler is killed, and no change is lost."""

import asyncio
import os
import random
import signal

from metaloop.common.json import JsonObject
from metaloop.devkit.demo.scenario import Scenario, ScenarioRun
from metaloop.devkit.demo.scenarios.hellos import HELLOS, Hellos, take_snapshot
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_NAMES = tuple(f"hello-{number:02}" for number in range(1, 21))
_CHANGED, _REPAIRED, _DELETED = "hello-07", "hello-12", "hello-20"
_PLANETS = ("Mercury", "Venus", "Mars", "Jupiter", "Saturn")


async def _create(run: ScenarioRun[Hellos]) -> None:
    run.output.begin(f"{len(_NAMES)} parents are created")
    async with asyncio.TaskGroup() as tasks:
        for name in _NAMES:
            tasks.create_task(_new(run, name))
    snapshot = await run.until(lambda snapshot: snapshot.is_converged)
    run.output.end(f"each has three children, {snapshot.children} in all, and its status counts them")


async def _change(run: ScenarioRun[Hellos]) -> None:
    run.output.begin(f"{_CHANGED} is changed to greet the Moon")
    await _greet(run, _CHANGED, "Moon")
    snapshot = await run.until(lambda snapshot: snapshot.hello(_CHANGED).who == "Moon" and snapshot.is_converged)
    run.output.end(f"its children are updated: {', '.join(greeting.text for greeting in snapshot.hello(_CHANGED).greetings)}")


async def _repair(run: ScenarioRun[Hellos]) -> None:
    child = f"{_REPAIRED}-french"
    run.output.begin(f"the child {child} is deleted by hand")
    before = (await run.snapshot()).hello(_REPAIRED).greetings
    await run.delete(CONFIG_MAPS, child)
    await run.until(lambda snapshot: snapshot.is_converged and snapshot.hello(_REPAIRED).greetings != before)
    run.output.end("it is created again")


async def _kill(run: ScenarioRun[Hellos]) -> None:
    victim = run.stack.reconcilers[0]
    changes = [(name, planet) for planet in _PLANETS for name in _NAMES]
    run.output.begin(f"{victim.name} is killed with SIGKILL in the middle of {len(changes)} changes")
    await _apply(run, changes[: len(changes) // 2])
    pid = victim.pid
    os.kill(pid, signal.SIGKILL)
    await _apply(run, changes[len(changes) // 2 :])
    await run.until(lambda snapshot: snapshot.is_converged and all(hello.who == _PLANETS[-1] for hello in snapshot.hellos))
    run.output.end(f"no change is lost: all parents greet {_PLANETS[-1]}, and {victim.name} was restarted (its process was {pid})")


async def _apply(run: ScenarioRun[Hellos], changes: list[tuple[str, str]]) -> None:
    """A burst of changes: in sequence for each parent, concurrently for all parents."""
    async with asyncio.TaskGroup() as tasks:
        for name in random.sample(_NAMES, len(_NAMES)):
            tasks.create_task(_greet_in_turn(run, name, [planet for changed, planet in changes if changed == name]))


async def _greet_in_turn(run: ScenarioRun[Hellos], name: str, planets: list[str]) -> None:
    for planet in planets:
        await _greet(run, name, planet)


async def _delete(run: ScenarioRun[Hellos]) -> None:
    run.output.begin(f"{_DELETED} is deleted")
    await run.delete(HELLOS, _DELETED)
    snapshot = await run.until(lambda snapshot: snapshot.is_converged and snapshot.children == 3 * (len(_NAMES) - 1))
    run.output.end(f"its children are deleted too: {len(snapshot.hellos)} parents and {snapshot.children} children are left")


async def _new(run: ScenarioRun[Hellos], name: str) -> None:
    hello: JsonObject = {"apiVersion": "example.com/v1", "kind": "Hello", "metadata": {"name": name}, "spec": {"who": "World"}}
    await run.cluster.create(HELLOS, hello, namespace=run.namespace)


async def _greet(run: ScenarioRun[Hellos], name: str, who: str) -> None:
    await run.change(HELLOS, name, {"spec": {"who": who}})


SCENARIO = Scenario(
    about="parents converge, children are updated and repaired, a reconciler is killed, and no change is lost",
    take_snapshot=take_snapshot,
    steps=(_create, _change, _repair, _kill, _delete),
)
