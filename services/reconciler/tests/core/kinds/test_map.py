"""The sync of one part of a MapController's parent, step by step."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, PARENT_UID, THINGS, a_parent, config_map, observed_with, stored
from scripted import NOW, Played, Script, played

from metaloop.common.api.map import MapController, parse_map
from metaloop.common.errors import InvalidAnswer, InvalidParent, MetaloopError
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.observation import ObservedGroup
from metaloop.reconciler.core.apply.last_applied import new_child
from metaloop.reconciler.core.effects import Effects
from metaloop.reconciler.core.kinds.map import sync_map
from metaloop.reconciler.core.model import ChildGroup, CreateChild, DeleteChild, Observed
from metaloop.reconciler.core.steps import PauseAnnounced, TombstoneEditsIgnored, WriteChildren
from metaloop.reconciler.errors import Failure, NameTaken, WritesFailed

KEY = "metaloop.dev/map-key"
BY = "metaloop.dev/map-controller"
PART = "uid-of-source"
WEBHOOK: JsonObject = {"webhook": {"url": "http://hook.example/map"}}


def mapping(*, tombstone: bool = False, version: str = "v1", **spec: JsonValue) -> MapController:
    """A MapController of Things that maps ConfigMaps to ConfigMaps, which are updated in place."""
    maps: JsonObject = {"apiVersion": "v1", "resource": "configmaps"}
    hooks: JsonObject = {"map": {**WEBHOOK, "version": version}, **({"tombstone": {**WEBHOOK, "version": version}} if tombstone else {})}
    whole: JsonObject = {
        "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource},
        "inputResources": [maps],
        "outputResources": [{**maps, "updateStrategy": {"method": "InPlace"}}],
        "hooks": hooks,
        **spec,
    }
    return parse_map({"kind": "MapController", "metadata": {"name": "copies", "uid": "uid-of-controller"}, "spec": whole})


def an_input(name: str = "source", *, value: str = "value") -> JsonObject:
    """An input, as the API server stores it."""
    return stored(config_map(name, data={"key": value}))


def output(name: str, *, value: str = "value", part: str = PART, by: str = "copies") -> JsonObject:
    """An output of a part, as an earlier sync created it."""
    metadata: JsonObject = {"name": name, "namespace": "default", "labels": {KEY: part}, "annotations": {BY: by, KEY: part}}
    child: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}}
    return stored(new_child(child, parent=a_parent()))


def part_with(
    *outputs: JsonObject,
    source: JsonObject | None = None,
    controller: MapController | None = None,
    parent: JsonObject | None = None,
    part: str = PART,
) -> Observed:
    """A part of a parent, with its input if it has one."""
    groups = (ChildGroup(info=CONFIG_MAPS, method="InPlace", objects=outputs),)
    seen = observed_with(controller or mapping(), THINGS, parent or a_parent(), groups, selector=None)
    inputs = (ObservedGroup(info=CONFIG_MAPS, objects=[source] if source is not None else []),)
    return replace(seen, part=part, inputs=inputs)


def copy_of(request: JsonObject) -> JsonObject:
    """A map hook that desires one copy of its input."""
    source = unstructured.child_object(request, "input")
    name = f"{unstructured.name(source)}-copy"
    return {"outputs": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": source["data"]}]}


def keeping(*names: str, **edits: JsonValue) -> Callable[[JsonObject], JsonObject]:
    """A tombstone hook that keeps the outputs with these names, after some edits."""

    def answer(request: JsonObject) -> JsonObject:
        shown = unstructured.child_object(unstructured.child_object(request, "outputs"), "ConfigMap.v1")
        kept = [obj for obj in shown.values() if isinstance(obj, dict) and unstructured.name(obj) in names]
        return {"outputs": [{**obj, **edits} for obj in kept]}

    return answer


def run(seen: Observed, script: Script | None = None) -> Played:
    return played(sync_map(seen, NOW), script)


def writes_of(done: Played) -> list[JsonObject]:
    """The objects that a sync writes or deletes."""
    return [action.obj for step in done.steps if isinstance(step, WriteChildren) for action in step.plan]


# -- an input and its outputs ------------------------------------------------------------------------------------------


def test_input_is_mapped_to_its_outputs():
    done = run(part_with(source=an_input()), Script(hook=copy_of))

    assert done.failure is None
    assert done.lines == ["choose how to apply", "call map", "children: create source-copy"]


def test_output_is_controlled_by_the_parent_and_marked_with_the_map_key():
    [written] = writes_of(run(part_with(source=an_input()), Script(hook=copy_of)))

    owner = controller_ref(written)
    assert owner is not None
    assert owner.uid == PARENT_UID
    assert unstructured.labels(written) == {KEY: PART}
    assert {key: unstructured.annotations(written)[key] for key in (BY, KEY)} == {BY: "copies", KEY: PART}


def test_hook_cannot_give_an_output_another_map_key():
    def hook(_: JsonObject) -> JsonObject:
        return {"outputs": [{**config_map("a"), "metadata": {"name": "a", "labels": {KEY: "x"}, "annotations": {KEY: "x", BY: "y"}}}]}

    [written] = writes_of(run(part_with(source=an_input()), Script(hook=hook)))

    assert unstructured.labels(written)[KEY] == PART
    assert unstructured.annotations(written)[BY] == "copies"


@pytest.mark.parametrize(("version", "name"), [("v1", "source-copy"), ("v2", "default/source-copy")])
def test_request_has_the_input_and_its_outputs_by_kind_and_name(version: str, name: str):
    present, source = output("source-copy"), an_input()

    [request] = run(part_with(present, source=source, controller=mapping(version=version)), Script(hook=copy_of)).asked

    assert request.keys() == {"controller", "parent", "mapKey", "input", "outputs"}
    assert (request["mapKey"], request["input"]) == (PART, source)
    assert request["outputs"] == {"ConfigMap.v1": {name: present}}


def test_part_that_is_as_desired_is_left_alone():
    done = run(part_with(output("source-copy"), source=an_input()), Script(hook=copy_of))

    assert done.lines == ["choose how to apply", "call map"]


def test_output_that_drifted_is_updated_and_one_that_is_not_desired_deleted():
    drifted, leftover = output("source-copy", value="old"), output("leftover")

    done = run(part_with(drifted, leftover, source=an_input()), Script(hook=copy_of))

    assert done.lines[-1] == "children: delete leftover, update source-copy"


@pytest.mark.parametrize(
    "foreign",
    [
        output("leftover", part="uid-of-another"),
        output("leftover", by="another"),
        stored(config_map("leftover"), owner=a_parent()),
        stored(config_map("leftover"), metadata={"annotations": {BY: "copies", KEY: PART}}),
    ],
    ids=["of another input", "of another controller", "not marked", "not controlled by the parent"],
)
def test_what_is_not_an_output_of_this_part_is_neither_shown_nor_deleted(foreign: JsonObject):
    done = run(part_with(foreign, source=an_input()), Script(hook=lambda _: {"outputs": []}))

    assert done.asked[0]["outputs"] == {"ConfigMap.v1": {}}
    assert writes_of(done) == []


def test_resync_is_asked_for_even_if_the_answer_is_invalid():
    done = run(part_with(source=an_input()), Script(hook=lambda _: {"outputs": [{"kind": "Secret"}], "resyncAfterSeconds": 5}))

    assert isinstance(done.failure, InvalidAnswer)
    assert done.failure.field == "outputs[0].apiVersion"
    assert "resync after 5 s" in done.lines


def test_status_in_an_answer_is_an_unknown_key():
    done = run(part_with(source=an_input()), Script(hook=lambda _: {"outputs": [], "status": {}, "finalized": True}))

    assert "unknown keys: finalized, status" in done.lines


def test_name_that_another_input_has_is_told_with_that_input():
    error = NameTaken("taken", rival="uid-of-another")
    failed = Effects(failures=(Failure(what="create ConfigMap default/source-copy", error=error),))

    done = run(part_with(source=an_input()), Script(hook=copy_of, written=failed))

    assert isinstance(done.failure, WritesFailed)
    assert done.lines[-1] == "rivals: uid-of-another"


# -- outputs without an input ------------------------------------------------------------------------------------------


def test_outputs_whose_input_is_gone_are_deleted():
    done = run(part_with(output("a"), output("b")))

    assert done.lines == ["children: delete a, delete b"]


def test_tombstone_hook_keeps_some_outputs():
    done = run(part_with(output("a"), output("b"), controller=mapping(tombstone=True)), Script(hook=keeping("a")))

    assert done.lines == ["call tombstone", "children: delete b"]
    assert done.asked[0].keys() == {"controller", "parent", "mapKey", "outputs"}


def test_kept_outputs_are_not_written():
    done = run(part_with(output("a"), controller=mapping(tombstone=True)), Script(hook=keeping("a")))

    assert done.lines == ["call tombstone"]


def test_edits_of_a_tombstone_hook_are_ignored_and_told_once():
    seen, hook = part_with(output("a"), controller=mapping(tombstone=True)), keeping("a", data={"key": "edited"})

    first = run(seen, Script(hook=hook))
    second = run(seen, Script(hook=hook, known=frozenset({TombstoneEditsIgnored(PARENT_UID)})))

    assert first.lines == [
        "call tombstone",
        "recall TombstoneEditsIgnored",
        "learn TombstoneEditsIgnored",
        "event: Warning TombstoneEditsIgnored",
    ]
    assert second.lines == ["call tombstone", "recall TombstoneEditsIgnored"]


def test_tombstone_hook_cannot_create_outputs():
    done = run(part_with(output("a"), controller=mapping(tombstone=True)), Script(hook=lambda _: {"outputs": [config_map("new")]}))

    assert done.lines[-2:] == ["event: Warning TombstoneEditsIgnored", "children: delete a"]


def test_tombstone_hook_may_name_what_it_keeps_without_the_rest():
    named: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    done = run(part_with(output("a"), controller=mapping(tombstone=True)), Script(hook=lambda _: {"outputs": [named]}))

    assert done.lines == ["call tombstone"]


def test_tombstone_hook_is_not_called_about_outputs_that_are_being_deleted():
    dying = output("a")
    unstructured.metadata(dying)["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert run(part_with(dying, controller=mapping(tombstone=True))).lines == []


def test_failing_tombstone_hook_deletes_nothing():
    error = InvalidAnswer("", "garbage")

    done = run(part_with(output("a"), controller=mapping(tombstone=True)), Script(failing={"call tombstone": error}))

    assert (done.failure, writes_of(done)) == (error, [])


# -- whether anything is done ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [PART, ""], ids=["a part", "the parent"])
def test_nothing_is_done_for_a_parent_that_is_being_deleted(part: str):
    assert run(part_with(output("a"), parent=a_parent(deleting=True), part=part)).lines == []


def test_nothing_is_done_for_a_parent_that_is_not_selected():
    thing: JsonObject = {"apiVersion": THINGS.api_version, "resource": THINGS.resource, "labelSelector": {"matchLabels": {"a": "b"}}}

    assert run(part_with(output("a"), controller=mapping(parentResource=thing))).lines == []


@pytest.mark.parametrize("part", [PART, ""], ids=["a part", "the parent"])
def test_malformed_selector_ends_the_sync_before_any_input_counts_as_gone(part: str):
    parent = a_parent(spec={"selector": {"matchLabels": {"a": 1}}})

    done = run(part_with(output("a"), parent=parent, part=part))

    assert isinstance(done.failure, InvalidParent)
    assert writes_of(done) == []


def test_pause_is_announced_by_the_parent_alone():
    parent = a_parent()
    unstructured.metadata(parent)["annotations"] = {"metaloop.dev/paused": "true"}

    assert run(part_with(output("a"), parent=parent)).lines == []
    assert run(part_with(parent=parent, part="")).lines[-1] == "event: Normal Paused"


def test_status_is_written_from_what_was_counted():
    counted: JsonObject = {"inputs": {"configmaps": {"total": 2}}, "outputs": {}, "failing": {"count": 0, "inputs": []}, "pending": 0}

    done = run(replace(part_with(part=""), summary=counted))

    assert done.lines == ["parent: status"]


def test_status_of_a_parent_that_nobody_counted_is_left_alone():
    done = run(part_with(part=""), Script(known=frozenset({PauseAnnounced(PARENT_UID)})))

    assert (done.lines, done.failure) == ([], None)


def test_actions_are_ordinary_writes_of_children():
    done = run(part_with(output("leftover"), source=an_input()), Script(hook=copy_of))

    [plan] = [step.plan for step in done.steps if isinstance(step, WriteChildren)]
    assert [type(action) for action in plan] == [DeleteChild, CreateChild]


def test_failures_of_the_hook_end_the_sync():
    error: MetaloopError = InvalidAnswer("outputs", "garbage")

    assert run(part_with(source=an_input()), Script(failing={"call map": error})).failure is error
