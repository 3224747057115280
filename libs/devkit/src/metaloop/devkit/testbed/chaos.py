"""Kills, stalls and parts processes while parents change, then checks that everything has converged.

The hook gives a missing child a random name, as controllers of Pods do. A hook that sees a state from before its own
last write would ask for a second child with the same index, so a duplicate proves a stale observation. A run passes if
all parents converge, without overlapping hook calls and without duplicates.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import aiohttp

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.processes import Daemon
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.network import Network
from metaloop.devkit.testbed.story import Story, expect_settled
from metaloop.devkit.testbed.tcpproxy import TcpProxy

_INDEX = "index"
_LARGEST_COUNT = 4
_CHILD_SHARE = 0.3
"""The share of changes that delete a child instead of changing a parent."""
_CALM_SECONDS = 2.0
"""How long everything has to stay converged: a worker that was stalled may still try to write."""
_SLOWEST_HOOK_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 0.3
_LONGEST_STALL_SECONDS = 7.0
"""Longer than a lease, so that the jobs of a stalled worker are given to others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChaosOptions:
    """How long, how much, and from which seed: the same seed makes the same choices, but not at the same times."""

    seed: int
    parents: int = 50
    duration_seconds: float = 20.0
    changes_per_second: float = 20.0
    fault_seconds: tuple[float, float] = (0.3, 2.0)
    """The shortest and longest pause between two faults."""
    with_api_server: bool = False
    """Whether the API server is killed and stalled as well."""
    network: Network | None = None
    """The links that are slowed down, parted and cut as well; None: none."""
    converged_seconds: float = 90.0


@dataclass(slots=True, kw_only=True)
class ChaosReport:
    """The injected faults and changes, and their results."""

    faults: Counter[str] = field(default_factory=Counter[str])
    changes: int = 0
    failed_changes: int = 0
    """Changes that the API server refused, because it was down or the object was deleted."""
    hook_calls: int = 0
    converged_after_seconds: float = 0.0
    overlaps: list[str] = field(default_factory=list[str])
    duplicates: list[str] = field(default_factory=list[str])


class Chaos:
    """One run, in a story of its own."""

    def __init__(self, story: Story, options: ChaosOptions) -> None:
        """Seed the random choices; nothing happens yet."""
        self._story = story
        self._options = options
        # A random generator for each purpose, so that the timing of one does not change the choices of the others.
        self._fault, self._load, self._hook = (random.Random(f"{options.seed} {part}") for part in range(3))  # noqa: S311 - repeatable by its seed
        self._parents: list[str] = []
        self.report = ChaosReport()

    async def run(self) -> ChaosReport:
        """Cause faults at random while parents change; raises AssertionError if something does not converge."""
        return await self.during(self._inject_faults)

    async def during(self, fault: Callable[[], Awaitable[object]]) -> ChaosReport:
        """Change parents while `fault` runs; raises AssertionError if something does not converge afterwards."""
        await self._begin()
        async with asyncio.TaskGroup() as tasks:
            changing = tasks.create_task(self._make_changes())
            await fault()
            changing.cancel()
        return await self._report()

    async def _begin(self) -> None:
        await self._story.controller(self._answer)
        for index in range(self._options.parents):
            name = f"p{index}"
            await self._story.parent(name, count=self._load.randint(0, _LARGEST_COUNT))
            self._parents.append(name)

    async def _report(self) -> ChaosReport:
        ended = time.monotonic()
        await eventually(self._converged, within_seconds=self._options.converged_seconds)
        self.report.converged_after_seconds = time.monotonic() - ended
        await steadily(self._converged, for_seconds=_CALM_SECONDS)
        self.report.hook_calls = len(self._story.calls())
        self.report.overlaps = [str(overlap) for overlap in self._story.lab.webhook.overlaps]
        return self.report

    async def _inject_faults(self) -> None:
        until = time.monotonic() + self._options.duration_seconds
        while time.monotonic() < until:
            await asyncio.sleep(self._fault.uniform(*self._options.fault_seconds))
            await self._inject_fault()

    async def _inject_fault(self) -> None:
        """Kill a process, stall one for a while, delete the broker's store, or disturb a link."""
        network = self._options.network
        what = self._fault.choices(["process", "wipe", "link"], weights=[9, 1, 5 if network else 0])[0]
        if what == "process":
            await self._harm(self._fault.choice(self._victims()))
        elif what == "link" and network:
            await self._disturb(*self._fault.choice([*network.links.items()]))
        else:
            self.report.faults["wipe nats-server"] += 1
            await self._story.lab.platform.broker.wipe()

    async def _harm(self, victim: Daemon) -> None:
        what = self._fault.choices(["kill", "stall"], weights=[2, 1])[0]
        self.report.faults[f"{what} {victim.name}"] += 1
        if what == "kill":
            _kill(victim)
            return
        victim.pause()
        await asyncio.sleep(self._fault.uniform(0.2, _LONGEST_STALL_SECONDS))
        victim.resume()

    async def _disturb(self, name: str, link: TcpProxy) -> None:
        what = self._fault.choice(["slow down", "part", "cut"])
        self.report.faults[f"{what} {name}"] += 1
        match what:
            case "slow down":
                link.delay_seconds = self._fault.uniform(0.02, _LONGEST_DELAY_SECONDS)
            case "part":
                link.partition()
            case _:
                link.cut()
                return
        await asyncio.sleep(self._fault.uniform(0.2, _LONGEST_STALL_SECONDS))
        link.delay_seconds = 0.0
        link.heal()

    def _victims(self) -> list[Daemon]:
        lab = self._story.lab
        services = [service.daemon for service in lab.stack.services]
        api_server = [lab.platform.plane.apiserver] if self._options.with_api_server else []
        return [*services, lab.platform.broker.daemon, *api_server]

    async def _make_changes(self) -> None:
        while True:
            await asyncio.sleep(self._load.expovariate(self._options.changes_per_second))
            try:
                await self._change()
            except (ApiRefused, aiohttp.ClientError, TimeoutError):
                # The API server was down or stalled, or the child was already deleted.
                self.report.failed_changes += 1
            else:
                self.report.changes += 1

    async def _change(self) -> None:
        """Change the number of children that a parent wants, or delete a child."""
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
        """The hook: one child for each index that the parent wants, an existing one or a new one with a random name."""
        parent = unstructured.child_object(request, "parent")
        observed = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
        await asyncio.sleep(self._hook.uniform(0, _SLOWEST_HOOK_SECONDS))
        indexes = self._names_by_index(unstructured.name(parent), observed)
        count = unstructured.integer(unstructured.child_object(parent, "spec"), "count")
        children = [config_map(indexes.get(str(index)) or self._new_name(parent), labels=_labels(parent, index)) for index in range(count)]
        return {"status": {"children": len(observed)}, "children": list(children)}

    def _names_by_index(self, parent: str, observed: JsonObject) -> dict[str, str]:
        """The name of the child with each index; a second child with the same index is recorded as a duplicate."""
        found: dict[str, str] = {}
        for name, child in observed.items():
            if not is_object(child) or unstructured.is_deleting(child):
                continue
            index = unstructured.labels(child).get(_INDEX, "")
            if index in found:
                self.report.duplicates.append(f"{parent}: {found[index]} and {name} with index {index}")
            found.setdefault(index, name)
        return found

    def _new_name(self, parent: JsonObject) -> str:
        return f"{unstructured.name(parent)}-{self._hook.getrandbits(40):010x}"

    async def _converged(self) -> None:
        children: dict[str, list[str]] = {}
        for child in (await self._story.config_maps()).values():
            labels = unstructured.labels(child)
            children.setdefault(labels["parent"], []).append(labels[_INDEX])
        for parent in await self._story.all_parents():
            name, count = unstructured.name(parent), unstructured.integer(unstructured.child_object(parent, "spec"), "count")
            indexes = sorted(children.get(name, []))
            expect(
                indexes == [str(index) for index in range(count)],
                f"{name} wants {count} children, and has those with the indexes {indexes}",
            )
            expect_settled(parent, children=count)


def _labels(parent: JsonObject, index: int) -> dict[str, str]:
    return {"parent": unstructured.name(parent), _INDEX: str(index)}


def _kill(daemon: Daemon) -> None:
    """Kill its process, unless it is just being restarted."""
    if daemon.is_running:
        os.kill(daemon.pid, signal.SIGKILL)
