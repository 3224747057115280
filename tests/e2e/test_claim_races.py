"""Races for children: whatever comes between, each object ends with the controller that the three laws of controllerRef
give it, or with none.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.manifests import child_rule, composite, config_map, parent
from metaloop.devkit.testbed.story import STORY_LABEL, THINGS, Story, three_config_maps
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

_GC_SECONDS = 90
_LATE_SECONDS = 1.0


def keep_all(request: JsonObject) -> JsonObject:
    """Desires exactly the children that it is shown, so that whoever owns one keeps it."""
    shown = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
    kept = [config_map(name, labels=unstructured.labels(child)) for name, child in shown.items() if isinstance(child, dict)]
    return {"status": {"children": len(shown)}, "children": [*kept]}


class Gate:
    """A hook that answers once it is let: what happens meanwhile happens in the middle of a sync."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.open = asyncio.Event()

    async def answer(self, request: JsonObject) -> JsonObject:
        """What `three_config_maps` says, in time."""
        self.called.set()
        await self.open.wait()
        return three_config_maps(request)


async def test_orphans_that_two_controllers_want_get_one_each_and_keep_it(story: Story) -> None:
    orphans = [config_map(f"orphan-{index}", labels={"wanted": "yes"}) for index in range(12)]
    await _create_all(story, orphans)
    for name in ("one", "two"):
        await _controller_of(story, name)

    async with asyncio.TaskGroup() as tasks:
        for name in ("one", "two"):
            tasks.create_task(_parent_of(story, name, selector={"wanted": "yes"}))

    await eventually(lambda: _each_is_controlled(story, 12))
    owners = await _owners(story, 12)
    await steadily(lambda: _owners_are(story, owners))
    for name in ("one", "two"):
        await eventually(lambda name=name: story.settled(name, children=list(owners.values()).count(name)))
        await story.cluster.delete(COMPOSITES, "", f"{story.name[:40]}-{name}")


async def test_orphan_that_its_controller_let_go_is_the_others(story: Story) -> None:
    """The deletion of the first parent orphans its child, which the second wanted all along."""
    await _create_all(story, [config_map("orphan-0", labels={"wanted": "yes"})])
    await _controller_of(story, "one")
    await _parent_of(story, "one", selector={"wanted": "yes"})
    await eventually(lambda: _owners_are(story, {"orphan-0": "one"}))
    await _controller_of(story, "two")
    await _parent_of(story, "two", selector={"wanted": "yes"})
    await eventually(lambda: story.settled("two", children=0))

    await story.cluster.delete(story.parents, story.name, "one", propagation="Orphan")

    await eventually(lambda: _owners_are(story, {"orphan-0": "two"}), within_seconds=_GC_SECONDS)
    for name in ("one", "two"):
        await story.cluster.delete(COMPOSITES, "", f"{story.name[:40]}-{name}")


async def test_children_that_a_former_parent_of_this_name_orphaned_are_adopted(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="kept")
    await eventually(lambda: story.settled("p"))
    uids = {name: unstructured.uid(child) for name, child in (await story.config_maps(of="p")).items()}

    await story.cluster.delete(story.parents, story.name, "p", propagation="Orphan")
    await eventually(lambda: _gone(story, "p"), within_seconds=_GC_SECONDS)
    recreated = await story.parent("p", text="kept")

    await eventually(lambda: story.settled("p"))
    children = await story.config_maps(of="p")
    assert {name: unstructured.uid(child) for name, child in children.items()} == uids
    assert {_owner_uid(child) for child in children.values()} == {unstructured.uid(recreated)}


async def test_parent_replaced_while_its_hook_is_asked_has_children_of_its_own_in_the_end(story: Story) -> None:
    """The answer was for the former parent: what it still creates belongs to that one's UID, and goes with it."""
    gate = Gate()
    await story.controller(gate.answer)
    await story.parent("p", text="former")
    await asyncio.wait_for(gate.called.wait(), 60)

    await story.cluster.delete(story.parents, story.name, "p")
    latter = await story.parent("p", text="latter")
    gate.open.set()

    await eventually(lambda: story.shows("p", text="latter"), within_seconds=_GC_SECONDS)
    await eventually(lambda: story.settled("p"))
    assert {_owner_uid(child) for child in (await story.config_maps(of="p")).values()} == {unstructured.uid(latter)}


async def test_child_relabelled_while_the_hook_is_asked_is_released_and_not_written(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    gate = Gate()
    story.now_answers(gate.answer)
    await story.change("p", text="after")
    await asyncio.wait_for(gate.called.wait(), 60)

    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"metadata": {"labels": {"parent": "nobody"}}})
    gate.open.set()

    await eventually(lambda: story.warning(of="p", containing="p-1"))
    await eventually(lambda: _is_an_orphan(story, "p-1"))
    await eventually(lambda: _texts_of(story, {"p-0": "after", "p-2": "after"}))
    released = await story.cluster.get(CONFIG_MAPS, story.name, "p-1")
    assert unstructured.child_object(released, "data") == {"text": "before"}


async def test_child_relabelled_there_and_back_during_a_sync_stays_a_child(story: Story) -> None:
    await story.controller()
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    before = await story.cluster.get(CONFIG_MAPS, story.name, "p-1")
    gate = Gate()
    story.now_answers(gate.answer)
    await story.change("p", text="after")
    await asyncio.wait_for(gate.called.wait(), 60)

    for label in ("nobody", "p"):
        await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"metadata": {"labels": {"parent": label}}})
    gate.open.set()

    await eventually(lambda: story.shows("p", text="after"))
    after = await story.cluster.get(CONFIG_MAPS, story.name, "p-1")
    assert (unstructured.uid(after), _owner_uid(after)) == (unstructured.uid(before), _owner_uid(before))


async def test_parent_that_is_being_deleted_adopts_nothing_and_gets_nothing_new(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    await _hold(story, "p")
    await story.cluster.delete(story.parents, story.name, "p")

    await _create_all(story, [config_map("late-orphan", labels={"parent": "p"})])
    calls = len(story.calls())
    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")

    await eventually(lambda: story.called(calls + 1))
    await steadily(lambda: _is_an_orphan(story, "late-orphan"))
    assert "p-1" not in await story.config_maps()
    await _let_go(story, "p")


async def test_orphaning_deletion_leaves_children_alone_and_for_good(story: Story) -> None:
    """The garbage collector takes their owner away while the parent still is there: nobody takes them back."""
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))
    uids = {name: unstructured.uid(child) for name, child in (await story.config_maps(of="p")).items()}

    await story.cluster.delete(story.parents, story.name, "p", propagation="Orphan")
    await eventually(lambda: _gone(story, "p"), within_seconds=_GC_SECONDS)

    await steadily(lambda: _all_orphans(story))
    assert {name: unstructured.uid(child) for name, child in (await story.config_maps(of="p")).items()} == uids


async def test_generated_selector_adopts_only_what_bears_the_parents_uid(story: Story) -> None:
    await story.controller(keep_all, generateSelector=True)
    owner = await story.parent("p", selector=None)
    orphans = [
        config_map("its-own", labels={"controller-uid": unstructured.uid(owner)}),
        config_map("anothers", labels={"controller-uid": "another"}),
    ]

    await _create_all(story, orphans)

    await eventually(lambda: story.settled("p", children=1))
    assert _owner_uid(await story.cluster.get(CONFIG_MAPS, story.name, "its-own")) == unstructured.uid(owner)
    assert controller_ref(await story.cluster.get(CONFIG_MAPS, story.name, "anothers")) is None


async def test_parent_that_gets_a_selector_is_served_at_once(story: Story) -> None:
    await _create_all(story, [config_map("p-1", labels={"parent": "p"}, data={"text": "orphan"})])
    await story.controller()
    await story.parent("p", text="mine", selector={"matchLabels": {}, "matchExpressions": []})
    await eventually(lambda: story.warning(of="p", containing="spec.selector"))
    assert await story.texts() == {"p-1": "orphan"}

    await story.change("p", selector={"matchLabels": {"parent": "p"}})

    await eventually(lambda: story.shows("p", text="mine"))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def late(platform: Platform) -> AsyncIterator[Story]:
    """A story whose services have watches that are late."""
    apart = Apart("late-races")
    async with (
        folder_apart(platform) as own,
        ApiProxy.before(own.plane, own.workdir) as proxy,
        Webhook.serve() as webhook,
        own.stack(kubeconfig=proxy.kubeconfig_path, settings=apart.settings(), reconcilers=1) as stack,
    ):
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await story.begin()
        await story.controller()
        await story.parent("before")
        await eventually(lambda: story.settled("before"))
        proxy.watch_delay_seconds = _LATE_SECONDS
        yield story
        await story.end()


async def test_parent_whose_deletion_was_not_seen_yet_adopts_nothing(late: Story) -> None:
    """Only the look at the live parent tells: the cache has it alive when the orphan comes."""
    await late.parent("p")
    await eventually(lambda: late.settled("p"))
    await _hold(late, "p")
    await steadily(late.no_more_than(100), for_seconds=2 * _LATE_SECONDS)

    await _create_all(late, [config_map("late-orphan", labels={"parent": "p"})])
    await late.cluster.delete(late.parents, late.name, "p")

    await steadily(lambda: _is_an_orphan(late, "late-orphan"), for_seconds=3 * _LATE_SECONDS)
    await _let_go(late, "p")


async def test_parent_whose_replacement_was_not_seen_yet_adopts_nothing_for_its_namesake(late: Story) -> None:
    await late.parent("q", count=0)
    await eventually(lambda: late.settled("q", children=0))

    await _create_all(late, [config_map("q-orphan", labels={"parent": "q"})])
    await late.cluster.delete(late.parents, late.name, "q")
    latter = await late.parent("q", count=0)

    async def collected_by_the_latter() -> None:
        found = await late.cluster.find(CONFIG_MAPS, late.name, "q-orphan")
        owner = controller_ref(found) if found else None
        if owner is not None and owner.uid != unstructured.uid(latter):
            pytest.fail(f"adopted for {owner}")
        expect(found is None, "the orphan is there")

    await eventually(collected_by_the_latter)


async def _controller_of(story: Story, name: str, *, parents: ResourceInfo = THINGS) -> None:
    """A controller of its own for the parents of this story whose label says `name`, which keeps what it owns."""
    url = story.lab.webhook.on(f"{story.name}-{name}", keep_all)
    rule: JsonObject = {
        "apiVersion": parents.api_version,
        "resource": parents.resource,
        "labelSelector": {"matchLabels": {STORY_LABEL: story.name, "by": name}},
    }
    manifest = composite(f"{story.name[:40]}-{name}", parent=parents, hook_url=url, children=[child_rule()], parentResource=rule)
    await story.cluster.create(COMPOSITES, manifest)


async def _parent_of(story: Story, name: str, *, selector: dict[str, str]) -> None:
    spec: JsonObject = {"selector": {"matchLabels": {**selector}}}
    obj = parent(THINGS, name, namespace=story.name, spec=spec, labels={STORY_LABEL: story.name, "by": name})
    await story.cluster.create(THINGS, obj, namespace=story.name)


async def _create_all(story: Story, objects: list[JsonObject]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for obj in objects:
            tasks.create_task(story.cluster.create(CONFIG_MAPS, obj, namespace=story.name))


async def _owners(story: Story, count: int) -> dict[str, str]:
    found = [await story.cluster.get(CONFIG_MAPS, story.name, f"orphan-{index}") for index in range(count)]
    return {unstructured.name(each): owner.name for each in found if (owner := controller_ref(each)) is not None}


async def _owners_are(story: Story, expected: dict[str, str]) -> None:
    owners = await _owners(story, len(expected))
    expect(owners == expected, f"the owners are {owners}, not {expected}")


async def _each_is_controlled(story: Story, count: int) -> None:
    owners = await _owners(story, count)
    expect(len(owners) == count, f"only {owners} have a controller")


async def _texts_of(story: Story, expected: dict[str, str]) -> None:
    found = await story.texts(of="p")
    expect(found == expected, f"{found} are there, not {expected}")


async def _all_orphans(story: Story) -> None:
    owned = [name for name, child in (await story.config_maps(of="p")).items() if controller_ref(child) is not None]
    expect(not owned, f"{owned} were adopted")


async def _is_an_orphan(story: Story, name: str) -> None:
    owner = controller_ref(await story.cluster.get(CONFIG_MAPS, story.name, name))
    expect(owner is None, f"{name} is controlled by {owner}")


async def _gone(story: Story, name: str) -> None:
    expect(await story.cluster.find(story.parents, story.name, name) is None, f"{name} is there")


async def _hold(story: Story, name: str) -> None:
    """Somebody else's finalizer keeps a deleted parent."""
    await story.cluster.patch(story.parents, story.name, name, {"metadata": {"finalizers": ["testbed.example.com/hold"]}})


async def _let_go(story: Story, name: str) -> None:
    await story.cluster.patch(story.parents, story.name, name, {"metadata": {"finalizers": None}})


def _owner_uid(obj: JsonObject) -> str:
    owner = controller_ref(obj)
    return owner.uid if owner else ""
