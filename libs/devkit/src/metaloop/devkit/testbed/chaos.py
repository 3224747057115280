"""Kills and stalls everything at random while parents change, then looks whether all is as it ought to be.

The hook names a missing child at random, as controllers of pods do: shown a view from before its own last write, it would ask for a second
child in the same place. So a duplicate is the proof of a stale view, and nothing but convergence, no overlap and no duplicate is a pass.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field

import aiohttp

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.processes import Daemon
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story, expect_settled

_PLACE = "place"
_LARGEST_COUNT = 4
_CHILD_SHARE = 0.3
"""The share of changes that are deletions of children behind the controller's back."""
_CALM_SECONDS = 2.0
"""How long what has converged has to stay so: a holder that was stalled may still mean to write."""
_SLOWEST_HOOK_SECONDS = 0.1
_LONGEST_STALL_SECONDS = 7.0
"""Longer than a lease lives, so that stalled holders are overtaken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosOptions:
    """How long, how much, and from which seed: the same seed makes the same choices, though not at the same moments."""

    seed: int
    parents: int = 50
    duration_seconds: float = 20.0
    changes_per_second: float = 20.0
    mischief_seconds: tuple[float, float] = (0.3, 2.0)
    """The least and longest pause between two acts."""
    with_api_server: bool = False
    """Whether the API server is killed and stalled as well."""
    converged_seconds: float = 90.0


@dataclass(slots=True, kw_only=True)
class ChaosReport:
    """What was done, and what came of it."""

    acts: Counter[str] = field(default_factory=Counter[str])
    changes: int = 0
    failed_changes: int = 0
    """Those that the API server did not take, because it was down or what they were about was gone."""
    hook_calls: int = 0
    converged_after_seconds: float = 0.0
    overlaps: list[str] = field(default_factory=list[str])
    duplicates: list[str] = field(default_factory=list[str])


class Chaos:
    """One run against a story of its own."""

    def __init__(self, story: Story, options: ChaosOptions) -> None:
        """Choose by the seed; nothing happens yet."""
        self._story = story
        self._options = options
        # One source of choices each, so that the moments at which one draws do not shift those of the others.
        self._mischief, self._load, self._hook = (random.Random(f"{options.seed} {part}") for part in range(3))  # noqa: S311 - to be repeated
        self._parents: list[str] = []
        self.report = ChaosReport()

    async def run(self) -> ChaosReport:
        """What came of it; raises AssertionError where something did not converge."""
        await self._story.controller(self._answer)
        for index in range(self._options.parents):
            name = f"p{index}"
            await self._story.parent(name, count=self._load.randint(0, _LARGEST_COUNT))
            self._parents.append(name)
        until = time.monotonic() + self._options.duration_seconds
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._make_mischief(until))
            tasks.create_task(self._make_changes(until))
        calmed = time.monotonic()
        await eventually(self._converged, within_seconds=self._options.converged_seconds)
        self.report.converged_after_seconds = time.monotonic() - calmed
        await steadily(self._converged, for_seconds=_CALM_SECONDS)
        self.report.hook_calls = len(self._story.calls())
        self.report.overlaps = [str(overlap) for overlap in self._story.lab.webhook.overlaps]
        return self.report

    async def _make_mischief(self, until: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self._mischief.uniform(*self._options.mischief_seconds))
            await self._act()

    async def _act(self) -> None:
        """Kill a process, stall one for a while, or wipe the broker's store."""
        broker = self._story.lab.platform.broker
        victim = self._mischief.choice(self._victims())
        what = self._mischief.choices(["kill", "stall", "wipe"], weights=[6, 3, 1])[0]
        self.report.acts[f"{what} {broker.daemon.name if what == 'wipe' else victim.name}"] += 1
        match what:
            case "kill":
                _kill(victim)
            case "wipe":
                await broker.wipe()
            case _:
                victim.pause()
                await asyncio.sleep(self._mischief.uniform(0.2, _LONGEST_STALL_SECONDS))
                victim.resume()

    def _victims(self) -> list[Daemon]:
        lab = self._story.lab
        services = [service.daemon for service in lab.stack.services]
        api_server = [lab.platform.plane.apiserver] if self._options.with_api_server else []
        return [*services, lab.platform.broker.daemon, *api_server]

    async def _make_changes(self, until: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self._load.expovariate(self._options.changes_per_second))
            try:
                await self._change()
            except (ApiRefused, aiohttp.ClientError, TimeoutError):
                # The API server was down or stalled, or the child was gone: another change follows.
                self.report.failed_changes += 1
            else:
                self.report.changes += 1

    async def _change(self) -> None:
        """Change a parent's count of children, or delete a child behind the controller's back."""
        name = self._load.choice(self._parents)
        children = await self._children_of(name) if self._load.random() < _CHILD_SHARE else []
        if children:
            child = self._load.choice(children)
            await self._story.cluster.delete(CONFIG_MAPS, self._story.name, unstructured.name(child))
            return
        count = self._load.randint(0, _LARGEST_COUNT)
        await self._story.change(name, count=count)

    async def _children_of(self, parent: str) -> list[JsonObject]:
        return [*(await self._story.config_maps(of=parent)).values()]

    async def _answer(self, request: JsonObject) -> JsonObject:
        """As many children as the parent wants, one in each place: those that are there, and new ones under random names."""
        parent = unstructured.child_object(request, "parent")
        observed = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
        await asyncio.sleep(self._hook.uniform(0, _SLOWEST_HOOK_SECONDS))
        places = self._places(unstructured.name(parent), observed)
        count = unstructured.integer(unstructured.child_object(parent, "spec"), "count")
        children = [config_map(places.get(str(place)) or self._new_name(parent), labels=_labels(parent, place)) for place in range(count)]
        return {"status": {"children": len(observed)}, "children": list(children)}

    def _places(self, parent: str, observed: JsonObject) -> dict[str, str]:
        """The name of the child in each place; a second one in the same place is noted."""
        found: dict[str, str] = {}
        for name, child in observed.items():
            if not is_object(child) or unstructured.is_deleting(child):
                continue
            place = unstructured.labels(child).get(_PLACE, "")
            if place in found:
                self.report.duplicates.append(f"{parent}: {found[place]} and {name} in place {place}")
            found.setdefault(place, name)
        return found

    def _new_name(self, parent: JsonObject) -> str:
        return f"{unstructured.name(parent)}-{self._hook.getrandbits(40):010x}"

    async def _converged(self) -> None:
        children: dict[str, list[str]] = {}
        for child in (await self._story.config_maps()).values():
            labels = unstructured.labels(child)
            children.setdefault(labels["parent"], []).append(labels[_PLACE])
        for parent in await self._story.all_parents():
            name, count = unstructured.name(parent), unstructured.integer(unstructured.child_object(parent, "spec"), "count")
            places = sorted(children.get(name, []))
            expect(places == [str(place) for place in range(count)], f"{name} wants {count} children, and has those in {places}")
            expect_settled(parent, children=count)


def _labels(parent: JsonObject, place: int) -> dict[str, str]:
    return {"parent": unstructured.name(parent), _PLACE: str(place)}


def _kill(daemon: Daemon) -> None:
    """Its keeper starts it again; a process that is just being started again is left alone."""
    if daemon.is_running:
        os.kill(daemon.pid, signal.SIGKILL)
