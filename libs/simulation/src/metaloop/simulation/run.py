"""Runs one story with one plan of faults, from its start until everything is at rest."""

import asyncio
import gc
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import structlog

from metaloop.common.objects import unstructured
from metaloop.common.telemetry import fields
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.history import History
from metaloop.simulation.invariants import Invariants
from metaloop.simulation.loop import VirtualLoop, owner
from metaloop.simulation.stories import Story
from metaloop.simulation.world import World

CONVERGENCE_SECONDS: Final = 120.0
"""How long after the last fault everything may take to be as desired. Retries wait for up to 40 s by then."""
_QUIET_SECONDS: Final = 20.0
_LOGGED_LENGTH: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a run showed."""

    story: str
    seed: str
    problems: tuple[str, ...]
    """What is wrong; empty after a good run."""
    history: History
    seconds: float
    """How much virtual time it took."""
    points: int
    """How many writes and messages there were that could be a crash point."""

    @property
    def is_good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def run(story: Story, plan: FaultPlan, *, seed: str) -> Result:
    """The result of one run."""
    history = History()
    was_enabled = gc.isenabled()
    gc.disable()  # its runs would depend on what happened in this process before
    try:
        with _logged_to(history), asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(_run(story, plan, World(seed=seed, plan=plan, history=history, size=story.size)))
    finally:
        if was_enabled:
            gc.enable()


async def _run(story: Story, plan: FaultPlan, world: World) -> Result:
    loop = asyncio.get_running_loop()
    began, problems = loop.time(), list[str]()
    loop.set_exception_handler(lambda _, context: world.history.violation(f"unhandled: {_unhandled(context)}"))
    invariants = Invariants(world=world)
    invariants.watch()
    world.start()
    await story.act(world)
    points = plan.points
    plan.cease()
    world.history.note("story", "no more faults")
    if problem := await world.until(lambda: story.problem(world), within_seconds=CONVERGENCE_SECONDS):
        problems.append(f"not converged within {CONVERGENCE_SECONDS:g} s: {problem}")
    else:
        problems += await _restless(story, world, invariants)
    problems += [f"{name} ended by itself {process.exits} times" for name, process in world.processes.items() if process.exits]
    seconds = loop.time() - began
    lines = [*world.history.lines]
    for process in world.processes.values():
        process.discard()
    world.history.lines[:] = lines
    problems = [*world.history.violations, *problems]
    return Result(story=story.name, seed=world.seed, problems=tuple(problems), history=world.history, seconds=seconds, points=points)


async def _restless(story: Story, world: World, invariants: Invariants) -> list[str]:
    """What still happens some time after everything was as desired, and what is left behind."""
    await asyncio.sleep(world.plan.settling_seconds)
    writes, calls = invariants.writes, world.webhooks.calls
    await asyncio.sleep(_QUIET_SECONDS)
    found: list[str] = []
    if problem := story.problem(world):
        found.append(f"converged, and then {problem}")
    if invariants.writes > writes:
        found.append(f"{invariants.writes - writes} writes at rest")
    if world.webhooks.calls > calls:
        found.append(f"{world.webhooks.calls - calls} hook calls at rest")
    for collection in world.api.store.collections.values():
        stuck = [str(key) for key, obj in collection.objects.items() if unstructured.is_deleting(obj)]
        found += [f"{collection.info.resource} {name} is being deleted for ever" for name in stuck]
    return found


@contextmanager
def _logged_to(history: History) -> Iterator[None]:
    """The services' warnings become lines of the history."""

    def take(_logger: object, _method: str, event: MutableMapping[str, Any]) -> NoReturn:
        who, what = owner.get(""), event.pop("event", "")
        details = " ".join(f"{key}={value}" for key, value in event.items() if key not in {fields.SERVICE, "exc_info"})
        history.note(who, f"log {what} {details}"[:_LOGGED_LENGTH])
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[take], wrapper_class=structlog.make_filtering_bound_logger(30), cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)


def _unhandled(context: dict[str, Any]) -> str:
    problem = context.get("exception")
    return f"{context['message']}: {problem!r}" if problem is not None else str(context["message"])
