"""A controller that crashes the watcher's code harms itself alone, wherever that happens, and is told of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from metaloop.common.api.controller import Controller
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES, Cluster
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import ServedResources, Unservable, World
from metaloop.watcher.core.rules.rule import Concern, Shown, Unit
from metaloop.watcher.core.watch import Watch

from .scenes import Heard, Scene, watcher_of

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

COMPOSITE = WORLDS["CompositeController"]


def crashes(name: str) -> bool:
    return name.startswith("crash-")


def crash() -> None:
    raise ExceptionGroup("unforeseen", [RuntimeError("thrown by a test")])


@dataclass(frozen=True, slots=True)
class CrashingRule:
    """Crashes for every change."""

    watches: tuple[Watch, ...]

    def concerned(self, change: Change, caches: Caches) -> Iterator[Concern]:
        del change, caches
        crash()
        yield from ()

    def shown(self, unit: Unit, caches: Caches) -> Iterator[Shown]:
        del unit, caches
        yield from ()


def parse(raw: JsonObject) -> Controller:
    if crashes(unstructured.name(raw)):
        crash()
    return COMPOSITE.kind.parse(raw)


def instance(controller: Controller, served: ServedResources) -> Instance | Unservable:
    if crashes(controller.name):
        crash()
    return COMPOSITE.instance(controller, served)


def instance_with_crashing_rule(controller: Controller, served: ServedResources) -> Instance | Unservable:
    found = COMPOSITE.instance(controller, served)
    if not crashes(controller.name) or not isinstance(found, Instance):
        return found
    return replace(found, rules=(*found.rules, CrashingRule((found.parents[0].watch,))))


PLACES: Mapping[str, World] = {
    "its spec is parsed": replace(COMPOSITE, kind=replace(COMPOSITE.kind, parse=parse)),
    "its instance is made": replace(COMPOSITE, instance=instance),
    "its parents are marked": replace(COMPOSITE, instance=instance_with_crashing_rule),
}


@pytest.mark.parametrize("place", PLACES)
async def test_crash_of_one_controller_is_told_and_others_are_served(kube: KubeClient, cluster: Cluster, namespace: str, place: str):
    heard = Heard()
    async with watcher_of(kube, heard, worlds={**WORLDS, "CompositeController": PLACES[place]}) as watcher:
        scene = Scene(watcher, heard, cluster, namespace)
        await scene.serve_parents()
        await scene.create_parent()
        await scene.install(f"crash-{scene.name}")
        await scene.install()

        await scene.runs()
        await scene.marked("p", "controller started")
        await scene.hears(f"Warning CreateError crash-{scene.name}: ", "unforeseen error")
        await scene.create_parent("q")
        await scene.marked("q", f"{scene.parents.kind} {scene.namespace}/q added")
        for name in (scene.name, f"crash-{scene.name}"):
            await cluster.delete(COMPOSITES, "", name)
