"""The toy kind over the real router and queue: its parts are units of work of their own."""

import asyncio
from collections.abc import Mapping

import pytest
from mirror_spec import CONFIG_MAPS, MIRROR_KIND, PARENT_LABEL, SOURCE_LABEL
from mirror_world import MIRROR_WORLD

from metaloop.common.faults import Fault
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.observation import Busy, CachedObservation
from metaloop.common.report import SyncReport
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import by_kind
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.record import Record, record_of
from metaloop.watcher.core.watch import Watch
from metaloop.watcher.core.watchset import instance_of
from metaloop.watcher.routing import Routing

THINGS = ResourceInfo(api_version="ex.io/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
MAPS = ResourceInfo(api_version=CONFIG_MAPS.api_version, resource=CONFIG_MAPS.resource, kind="ConfigMap", namespaced=True)


class World:
    """A MirrorController of Things, running over caches in hand."""

    def __init__(self) -> None:
        self.resources: Mapping[ResourceId, ResourceInfo] = {info.id: info for info in (THINGS, MAPS)}
        self.routing = Routing(shard="0", limits=Limits(), served=self, changed=asyncio.Event())
        self.version = 0
        for info in self.resources.values():
            self.routing.caches.open(Watch(info), now=0.0).end_list("1")
        spec: JsonObject = {"parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource}}
        self.controller = MIRROR_KIND.parse({"metadata": {"name": "m", "uid": "m"}, "spec": spec})
        self.instance = instance_of(self.controller, self.resources, worlds=by_kind(*WORLDS.values(), MIRROR_WORLD))

    def start(self) -> None:
        assert isinstance(self.instance, Instance)
        self.routing.router.show(self.controller.id, dumps(self.controller.raw))
        self.routing.router.start(self.instance, reason="start")
        self.routing.queue.unblock(self.controller.id)

    def see(self, info: ResourceInfo, name: str, *, labels: dict[str, str] | None = None, owner: str = "") -> Record:
        """An object is like this now; its UID is `uid-<name>`."""
        self.version += 1
        references = [{"apiVersion": THINGS.api_version, "kind": "Thing", "name": owner, "uid": f"uid-{owner}", "controller": True}]
        metadata: JsonObject = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        record = record_of({"metadata": {**metadata, "labels": {**(labels or {})}, "ownerReferences": [*references] if owner else []}})
        assert record is not None
        change = self.routing.caches[Watch(info).id].put(record)
        assert change is not None
        self.routing.router.take(change)
        return record

    def lose(self, info: ResourceInfo, record: Record) -> None:
        """An object is gone."""
        change = self.routing.caches[Watch(info).id].remove(record)
        assert change is not None
        self.routing.router.take(change)

    def key(self, parent: str, part: str = "") -> JobKey:
        return JobKey(self.controller.id, THINGS.id, "n", parent, part)

    def take_marked(self) -> set[JobKey]:
        """What waits to be run; then nothing does."""
        marked = {entry.key for entry in self.routing.queue.entries() if entry.mark is not None}
        for key in marked:
            self.routing.queue.forget(key)
        return marked

    def shown(self, key: JobKey) -> tuple[list[str], list[str]]:
        """The names of the inputs and of the children that a claim of `key` shows."""
        seen = self.routing.observer.observe(key)
        assert isinstance(seen, CachedObservation), seen
        assert seen.part == key.part
        return _names(seen.inputs[0].objects), _names(seen.children[0].objects)


def _names(objects: object) -> list[str]:
    return sorted(loads(each)["metadata"]["name"] for each in objects)  # type: ignore[attr-defined]


@pytest.fixture
def world() -> World:
    """Two parents, and two sources of the first; nothing is marked."""
    world = World()
    for parent in ("p", "q"):
        world.see(THINGS, parent)
    for source in ("a", "b"):
        world.see(MAPS, source, labels={PARENT_LABEL: "p"})
    world.start()
    return world


async def test_a_controller_that_starts_marks_every_parent_and_every_part(world: World) -> None:
    assert world.take_marked() == {world.key("p"), world.key("q"), world.key("p", "uid-a"), world.key("p", "uid-b")}


async def test_a_source_marks_its_part_alone(world: World) -> None:
    world.take_marked()

    world.see(MAPS, "a", labels={PARENT_LABEL: "p"})

    assert world.take_marked() == {world.key("p", "uid-a")}


async def test_a_source_that_moves_to_another_parent_marks_both_parts(world: World) -> None:
    world.take_marked()

    world.see(MAPS, "a", labels={PARENT_LABEL: "q"})

    assert world.take_marked() == {world.key("p", "uid-a"), world.key("q", "uid-a")}


async def test_a_parent_that_changes_marks_all_of_its_parts(world: World) -> None:
    world.take_marked()

    world.see(THINGS, "p")

    assert world.take_marked() == {world.key("p"), world.key("p", "uid-a"), world.key("p", "uid-b")}


async def test_a_claim_of_a_part_shows_its_source_and_its_mirror(world: World) -> None:
    for source in ("a", "b"):
        world.see(MAPS, f"{source}-mirror", labels={SOURCE_LABEL: f"uid-{source}"}, owner="p")

    assert world.shown(world.key("p", "uid-a")) == (["a"], ["a-mirror"])
    assert world.shown(world.key("p", "uid-b")) == (["b"], ["b-mirror"])


async def test_the_mirror_of_a_source_that_is_gone_is_shown_without_it(world: World) -> None:
    source = world.see(MAPS, "c", labels={PARENT_LABEL: "p"})
    world.see(MAPS, "c-mirror", labels={SOURCE_LABEL: "uid-c"}, owner="p")
    world.take_marked()

    world.lose(MAPS, source)

    assert world.take_marked() == {world.key("p", "uid-c")}
    assert world.shown(world.key("p", "uid-c")) == ([], ["c-mirror"])


async def test_parts_of_one_parent_are_leased_side_by_side(world: World) -> None:
    queue = world.routing.queue

    jobs = {job.key for job in iter(queue.take, None)}
    leases = [queue.claim(key, worker="w", slots=9) for key in jobs]

    assert {world.key("p", "uid-a"), world.key("p", "uid-b")} <= jobs
    assert all(isinstance(lease, Lease) for lease in leases)
    assert isinstance(queue.claim(world.key("p", "uid-a"), worker="another", slots=9), Busy)


async def test_a_parent_whose_parts_fail_counts_once(world: World) -> None:
    for part in ("uid-a", "uid-b"):
        world.routing.router.record_report(SyncReport(key=world.key("p", part), lease="", result="retry", fault=Fault.FORBIDDEN))

    stats = world.routing.router.stats[world.controller.id]

    assert (stats.parents, stats.failing_parents) == (2, 1)
