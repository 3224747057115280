"""Outputs whose input is gone: deleted, or kept for as long as the tombstone hook says."""

import time

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, EVENTS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.mapping import Mapped, copying, keeping_all
from metaloop.devkit.testbed.story import THINGS, Story

_GC_SECONDS = 90


@pytest.fixture
def mapped(story: Story) -> Mapped:
    return Mapped(story=story, name=story.name)


async def _two_mapped(mapped: Mapped, **spec: object) -> None:
    """A parent with the inputs a and b, both mapped."""
    await mapped.install(copying("copy"), **spec)
    await mapped.parent("p")
    for name in "ab":
        await mapped.input(name, text=name)
    await eventually(lambda: mapped.has({"a-p-copy": "a", "b-p-copy": "b"}))


def _with_tombstone(mapped: Mapped, behaviour: object = keeping_all) -> JsonObject:
    return {"map": mapped.hook("map", copying("copy")), "tombstone": mapped.hook("tombstone", behaviour)}  # type: ignore[arg-type]


async def test_outputs_go_with_their_input(mapped: Mapped) -> None:
    await _two_mapped(mapped)

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")

    await eventually(lambda: mapped.has({"b-p-copy": "b"}))


async def test_outputs_go_while_their_input_is_being_deleted(mapped: Mapped) -> None:
    await _two_mapped(mapped)
    held: JsonObject = {"metadata": {"finalizers": ["testbed.example.com/held"]}}
    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a", held)

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")

    await eventually(lambda: mapped.has({"b-p-copy": "b"}))
    source = await mapped.story.cluster.get(CONFIG_MAPS, mapped.story.name, "a")
    assert unstructured.is_deleting(source)
    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a", {"metadata": {"finalizers": None}})


async def test_outputs_go_with_the_label_of_their_input_and_come_back_with_it(mapped: Mapped) -> None:
    await _two_mapped(mapped)

    await mapped.relabel("a", None)
    await eventually(lambda: mapped.has({"b-p-copy": "b"}))
    await mapped.relabel("a", "yes")

    await eventually(lambda: mapped.has({"a-p-copy": "a", "b-p-copy": "b"}))


async def test_edited_selector_exchanges_the_inputs(mapped: Mapped) -> None:
    await _two_mapped(mapped)
    await mapped.input("c", text="c", labels={"other": "yes"})

    await mapped.select("p", other="yes")

    await eventually(lambda: mapped.has({"c-p-copy": "c"}))


async def test_malformed_selector_deletes_nothing_and_is_told(mapped: Mapped) -> None:
    await _two_mapped(mapped)

    await mapped.story.cluster.patch(THINGS, mapped.story.name, "p", {"spec": {"selector": {"matchLabels": 3}}})
    await eventually(lambda: mapped.story.warning(of="p", containing="spec.selector.matchLabels"))

    await steadily(lambda: mapped.has({"a-p-copy": "a", "b-p-copy": "b"}))


async def test_tombstone_hook_keeps_outputs_and_is_not_asked_in_a_loop(mapped: Mapped) -> None:
    await _two_mapped(mapped, hooks=_with_tombstone(mapped))

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")
    await eventually(lambda: mapped.called(1, "tombstone"))

    await steadily(mapped.no_more_than(2, "tombstone"), for_seconds=2)
    await mapped.has({"a-p-copy": "a", "b-p-copy": "b"})
    request = mapped.calls("tombstone")[0].request
    assert request.keys() == {"controller", "parent", "mapKey", "outputs"}


async def test_tombstone_hook_is_asked_again_after_the_time_that_it_asks_for(mapped: Mapped) -> None:
    """As snapshots expire."""
    began: list[float] = []

    def expire(request: JsonObject) -> JsonObject:
        began.append(time.monotonic())
        return {**keeping_all(request), "resyncAfterSeconds": 1} if len(began) < 3 else {"outputs": []}

    await _two_mapped(mapped, hooks=_with_tombstone(mapped, expire))

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")

    await eventually(lambda: mapped.has({"b-p-copy": "b"}))
    assert began[2] - began[0] >= 1


async def test_tombstone_hook_cannot_edit_what_it_keeps_which_is_said_once(mapped: Mapped) -> None:
    """It is asked again at each resync."""

    def edit(request: JsonObject) -> JsonObject:
        kept = unstructured.child_objects(keeping_all(request), "outputs")
        return {"outputs": [{**obj, "data": {"text": "edited"}} for obj in kept]}

    await _two_mapped(mapped, hooks=_with_tombstone(mapped, edit), resyncPeriodSeconds=1)

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")

    await eventually(lambda: mapped.story.warning(of="p", reason="TombstoneEditsIgnored"))
    await eventually(lambda: mapped.called(4, "tombstone"))
    await mapped.has({"a-p-copy": "a", "b-p-copy": "b"})
    events = await mapped.story.cluster.list(EVENTS, mapped.story.name)
    told = [each.get("count") for each in events if each.get("reason") == "TombstoneEditsIgnored"]
    assert told in ([1], [2], [1, 1])  # once by each reconciler


async def test_failing_tombstone_hook_deletes_nothing(mapped: Mapped) -> None:
    await _two_mapped(mapped, hooks=_with_tombstone(mapped, lambda _: {"outputs": "garbage"}))

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")
    await eventually(lambda: mapped.story.warning(of="p", containing="outputs: must be a list"))

    await mapped.has({"a-p-copy": "a", "b-p-copy": "b"})
    await eventually(lambda: mapped.ready("False"))


async def test_input_that_comes_back_is_another_input(mapped: Mapped) -> None:
    """Its outputs need other names while those of the former input are kept."""

    def by_uid(request: JsonObject) -> JsonObject:
        source = unstructured.child_object(request, "input")
        name = f"copy-{unstructured.uid(source)[:8]}"
        return {"outputs": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": source["data"]}]}

    await mapped.install(by_uid, hooks={"map": mapped.hook("map", by_uid), "tombstone": mapped.hook("tombstone", keeping_all)})
    await mapped.parent("p")
    first = await mapped.input("a", text="first")
    await eventually(lambda: mapped.has({f"copy-{unstructured.uid(first)[:8]}": "first"}))

    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")
    second = await mapped.input("a", text="second")

    names = [f"copy-{unstructured.uid(each)[:8]}" for each in (first, second)]
    await eventually(lambda: mapped.has({names[0]: "first", names[1]: "second"}))


async def test_name_that_two_inputs_desire_is_an_error_of_both_and_neither_flaps(mapped: Mapped) -> None:
    def same_name(request: JsonObject) -> JsonObject:
        data = unstructured.child_object(request, "input")["data"]
        return {"outputs": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "same"}, "data": data}]}

    await mapped.install(same_name)
    await mapped.parent("p")
    await mapped.input("a", text="a")
    await eventually(lambda: mapped.has({"same": "a"}))
    await mapped.input("b", text="b")

    async def both_fail() -> None:
        failing = unstructured.child_object(await mapped.status(), "failing")
        told = {
            (unstructured.text(each, "name"), unstructured.text(each, "reason")) for each in unstructured.child_objects(failing, "inputs")
        }
        expect(told == {("a", "NameTaken"), ("b", "NameTaken")}, f"failing is {failing}")

    await eventually(both_fail)
    await eventually(lambda: mapped.story.warning(of="p", containing="the name is taken by an output for another input"))
    await steadily(lambda: mapped.has({"same": "a"}), for_seconds=2)
    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a")

    await eventually(lambda: mapped.has({"same": "b"}))
    await eventually(lambda: mapped.ready("True"))


async def test_outputs_go_with_their_parent(mapped: Mapped) -> None:
    await _two_mapped(mapped, hooks=_with_tombstone(mapped))

    await mapped.story.cluster.delete(THINGS, mapped.story.name, "p")

    await eventually(lambda: mapped.has({}), within_seconds=_GC_SECONDS)
    assert mapped.calls("tombstone") == []


async def test_outputs_of_a_parent_that_is_deleted_with_orphans_stay(mapped: Mapped) -> None:
    await _two_mapped(mapped)

    await mapped.story.cluster.delete(THINGS, mapped.story.name, "p", propagation="Orphan")

    async def are_orphans() -> None:
        found = await mapped.outputs()
        owners = {name: unstructured.metadata(obj).get("ownerReferences") for name, obj in found.items()}
        expect(owners == {"a-p-copy": None, "b-p-copy": None}, f"the owners are {owners}")

    await eventually(are_orphans, within_seconds=_GC_SECONDS)


async def test_outputs_outlive_their_controller(mapped: Mapped) -> None:
    await _two_mapped(mapped)

    await mapped.story.end()

    await eventually(lambda: mapped.story.normal_event(of=mapped.name, reason="Stopped"))
    await steadily(lambda: mapped.has({"a-p-copy": "a", "b-p-copy": "b"}), for_seconds=0.5)
