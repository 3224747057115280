"""Every kind that users manage as children: created once, left alone at rest, repaired with one write, and recreated
where nothing else helps.
"""

import asyncio
from collections.abc import Sequence

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed import manifests
from metaloop.devkit.testbed.audit import Request
from metaloop.devkit.testbed.cluster import COMPOSITES, ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.kinds import KINDS, Kind, manifest, patched
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule
from metaloop.devkit.testbed.story import Story

STRATEGIES = ["dynamic-apply", "server-side-apply"]
REALMS = manifests.parent_resource("realms", namespaced=False)
_SETTLE_SECONDS = 60
_SYNCS_AT_REST = 2

NAMESPACED = [kind for kind in KINDS.values() if kind.info.namespaced]
CLUSTER_SCOPED = [kind for kind in KINDS.values() if not kind.info.namespaced]


class Zoo:
    """A parent with one child of each of some kinds."""

    def __init__(self, story: Story, kinds: Sequence[Kind], *, strategy: str, method: str, parent: str = "p") -> None:
        self.story = story
        self.kinds = kinds
        self.parent = parent
        self.others: set[str] = set()
        """The kinds of which the hook wants something else by now."""
        self._strategy = strategy
        self._method = method

    async def open(self) -> None:
        """The controller and the parent are there."""
        rules = [child_rule(kind.info.id, method=self._method) for kind in self.kinds]
        controller = self.story.controller_manifest(self._behaviour, children=rules, resyncPeriodSeconds=1)
        controller["metadata"] = {
            **unstructured.metadata(controller),
            "annotations": {"metaloop.dev/apply-strategy": self._strategy},
        }
        await self.story.cluster.create(COMPOSITES, controller)
        await self.story.parent(self.parent)

    def wanted(self, kind: Kind) -> JsonObject:
        """What the hook wants of a kind."""
        obj = manifest(kind, self.child_name(kind), labels={"parent": self.parent})
        return patched(obj, kind.other) if kind.name in self.others else obj

    def child_name(self, kind: Kind) -> str:
        """What its child is called; a Namespace's name is taken in the whole cluster."""
        return "a" if kind.info.namespaced else f"{self.story.name}-a"

    async def child(self, kind: Kind) -> JsonObject:
        """The child of a kind."""
        return await self.story.cluster.get(kind.info, self.story.name, self.child_name(kind))

    async def is_complete(self) -> None:
        """Raises AssertionError until all children are there."""
        for kind in self.kinds:
            await self.child(kind)

    async def at_rest(self) -> None:
        """Waits until a whole sync wrote nothing."""
        await eventually(self.is_complete, within_seconds=_SETTLE_SECONDS)
        async with asyncio.timeout(_SETTLE_SECONDS):
            while await self.writes_during(syncs=1):
                pass

    async def writes_during(self, *, syncs: int) -> list[Request]:
        """What was written by us while the parent was synced so many times, from the hook's call to the last write."""
        mark, calls = self.story.lab.audit.mark(), len(self.story.calls())
        # The writes of a sync are over when the next one calls the hook.
        await eventually(lambda: self.story.called(calls + syncs + 1))
        return await self.writes_since(mark)

    async def writes_since(self, mark: int) -> list[Request]:
        """What was written to children by us."""
        resources = {kind.info.resource for kind in self.kinds}
        return [each for each in await self.story.lab.audit.ours_since(mark) if each.is_write and each.resource in resources]

    def _behaviour(self, request: JsonObject) -> JsonObject:
        del request
        return {"children": [self.wanted(kind) for kind in self.kinds]}


def _as_wanted(kind: Kind, found: JsonObject) -> None:
    """Raises AssertionError while the drift of a kind is still there."""
    expect(patched(found, kind.drift) != found, f"{kind.name} has still drifted")


async def _drift(zoo: Zoo, kind: Kind) -> None:
    await zoo.story.cluster.patch(kind.info, zoo.story.name, zoo.child_name(kind), kind.drift)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_kind_is_created_and_at_rest_nothing_is_written(story: Story, strategy: str) -> None:
    zoo = Zoo(story, NAMESPACED, strategy=strategy, method="InPlace")
    mark = story.lab.audit.mark()

    await zoo.open()
    await zoo.at_rest()

    assert await zoo.writes_during(syncs=_SYNCS_AT_REST) == []
    # Not even once: who doesn't remember that a write changed nothing would do it after each restart.
    assert sorted(each.resource for each in await zoo.writes_since(mark)) == sorted(kind.info.resource for kind in NAMESPACED)


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_kind_is_repaired_with_one_write(story: Story, strategy: str) -> None:
    zoo = Zoo(story, NAMESPACED, strategy=strategy, method="InPlace")
    await zoo.open()
    await zoo.at_rest()

    for kind in NAMESPACED:
        mark = story.lab.audit.mark()
        await _drift(zoo, kind)

        async def is_repaired(kind: Kind = kind, mark: int = mark) -> None:
            _as_wanted(kind, await zoo.child(kind))
            # The audit log has a write a moment after the object shows it.
            effective = [each.resource for each in await zoo.writes_since(mark) if each.code < 300]
            expect(effective == [kind.info.resource], f"{kind.name} was written as {effective}")

        await eventually(is_repaired)
    assert await zoo.writes_during(syncs=1) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_every_kind_is_recreated(story: Story, strategy: str) -> None:
    zoo = Zoo(story, NAMESPACED, strategy=strategy, method="Recreate")
    await zoo.open()
    await zoo.at_rest()
    before = {kind.name: unstructured.uid(await zoo.child(kind)) for kind in NAMESPACED}

    zoo.others = {kind.name for kind in NAMESPACED}
    await story.change("p", text="other")

    async def are_new() -> None:
        for kind in NAMESPACED:
            if kind.name == "PersistentVolumeClaim":
                await _let_go(story, kind)
            found = await zoo.child(kind)
            expect(unstructured.uid(found) != before[kind.name], f"{kind.name} is still the old one")
            expect(patched(found, kind.other) == found, f"{kind.name} is not as wanted")

    await eventually(are_new, within_seconds=_SETTLE_SECONDS)
    await zoo.at_rest()
    assert await zoo.writes_during(syncs=_SYNCS_AT_REST) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_cannot_be_changed_in_place_is_told_and_nothing_is_lost(story: Story, strategy: str) -> None:
    zoo = Zoo(story, [KINDS["Job"], KINDS["ConfigMap"]], strategy=strategy, method="InPlace")
    await zoo.open()
    await zoo.at_rest()
    before = unstructured.uid(await zoo.child(KINDS["Job"]))

    zoo.others = {"Job", "ConfigMap"}
    await story.change("p", text="other")

    await eventually(lambda: story.warning(of="p", containing="field is immutable"))

    async def other_child_is_changed() -> None:
        expect((await zoo.child(KINDS["ConfigMap"]))["data"] != KINDS["ConfigMap"].content["data"], "not changed")

    await eventually(other_child_is_changed)
    assert unstructured.uid(await zoo.child(KINDS["Job"])) == before


@pytest.mark.parametrize("strategy", STRATEGIES)
async def test_what_nobody_could_create_is_not_recreated(story: Story, strategy: str) -> None:
    """The hook's mistake costs no child."""
    zoo = Zoo(story, [KINDS["Job"]], strategy=strategy, method="Recreate")
    await zoo.open()
    await zoo.at_rest()
    before = unstructured.uid(await zoo.child(KINDS["Job"]))

    def wants_nonsense(_: JsonObject) -> JsonObject:
        nonsense: JsonObject = {"spec": {"template": {"spec": {"restartPolicy": "Whenever"}}}}
        return {"children": [patched(zoo.wanted(KINDS["Job"]), nonsense)]}

    story.now_answers(wants_nonsense)
    await story.change("p", text="other")

    await eventually(lambda: story.warning(of="p", containing="restartPolicy"))
    assert unstructured.uid(await zoo.child(KINDS["Job"])) == before


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", CLUSTER_SCOPED, ids=lambda kind: kind.name)
async def test_cluster_scoped_children_of_a_cluster_scoped_parent(story: Story, kind: Kind, strategy: str) -> None:
    await install_parent(story.cluster, REALMS)
    story.parents = REALMS
    zoo = Zoo(story, [kind], strategy=strategy, method="InPlace", parent=f"{story.name}-p")

    await zoo.open()
    await zoo.at_rest()
    assert await zoo.writes_during(syncs=_SYNCS_AT_REST) == []

    mark = story.lab.audit.mark()
    await _drift(zoo, kind)

    async def is_repaired() -> None:
        _as_wanted(kind, await zoo.child(kind))

    await eventually(is_repaired)
    assert [each.resource for each in await zoo.writes_since(mark) if each.code < 300] == [kind.info.resource]
    await story.cluster.delete(REALMS, "", zoo.parent)


async def _let_go(story: Story, kind: Kind) -> None:
    """Takes the finalizer away that protects a claim while pods may use it."""
    try:
        await story.cluster.patch(kind.info, story.name, "a", {"metadata": {"finalizers": None}})
    except ApiRefused:
        return
