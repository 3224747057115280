"""The stories that only seeds choose do what they say."""

import asyncio

from virtual import on_virtual_time

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.more_stories import ALL_STORIES, MANY, FickleHook, tag
from metaloop.simulation.resources import NAMESPACE
from metaloop.simulation.run import run
from metaloop.simulation.stories import STORIES
from metaloop.simulation.world import Size, World

REQUEST: JsonObject = {"parent": {"metadata": {"name": "a"}, "spec": {"count": 3, "text": "first"}}, "children": {"ConfigMap.v1": {}}}


def texts_of(answer: JsonObject) -> list[str]:
    children = unstructured.child_objects(answer, "children")
    return [unstructured.text(unstructured.child_object(child, "data"), "text") for child in children]


def test_a_fickle_hook_answers_one_request_differently_until_it_is_settled():
    hook = FickleHook()
    fickle = [texts_of(hook(REQUEST)) for _ in range(3)]
    hook.is_settled = True
    settled = [texts_of(hook(REQUEST)) for _ in range(2)]

    assert fickle == [["mood 1"] * 2, ["mood 2"] * 3, ["mood 0"] * 2]
    assert settled == [["first"] * 3] * 2


def test_a_tag_is_a_label_and_an_attachment():
    answer = tag({"object": {"metadata": {"name": "a"}, "spec": {"text": "first"}}})

    assert answer["labels"] == {"tag": "first"}
    [attachment] = unstructured.child_objects(answer, "attachments")
    assert (unstructured.name(attachment), unstructured.namespace(attachment)) == ("a-tag", NAMESPACE)


def test_watchers_of_two_shards_hold_a_lease_each():
    async def main() -> set[str]:
        world = World(seed="1", plan=FaultPlan(), size=Size(watchers=4, shards=2))
        world.start()
        await asyncio.sleep(2)
        leases = next(each for each in world.api.store.collections.values() if each.info.resource == "leases")
        return {key.name for key in leases.objects}

    assert on_virtual_time(main()) == {"metaloop-watcher-0", "metaloop-watcher-1"}


def test_a_fickle_hook_is_followed_until_it_settles():
    history = run(ALL_STORIES["fickle-hook"], FaultPlan(), seed="1").history.lines

    assert sum("/sets/sync" in line for line in history) > 10


def test_a_parent_that_never_rests_keeps_nobody_waiting():
    """All others were changed once, and are called for within a second of that."""
    lines = run(ALL_STORIES["many-parents"], FaultPlan(), seed="1").history.lines
    changed = max(index for index, line in enumerate(lines) if f"patch things {MANY[-1]}" in line)
    at = float(lines[changed].split()[0])
    soon = [line for line in lines[changed:] if float(line.split()[0]) < at + 1]

    assert all(any(f"/sets/sync {name} " in line for line in soon) for name in MANY)


def test_stories_that_are_tried_with_crashes_are_chosen_by_seeds_too():
    assert STORIES.keys() < ALL_STORIES.keys()
