"""What would become of the objects of a component, wave by wave, if each wave became ready."""

from dataclasses import replace

import pytest
from components import MARKS, RULES, api_service, going, key, live, manifest, targets

from metaloop.common.json import JsonObject
from metaloop.reconciler.core.component.identity import Marks, ObjectKey
from metaloop.reconciler.core.component.inventory import Item, scheduled
from metaloop.reconciler.core.component.preview import PreviewedObject, PreviewedWave, previewed_removal, previewed_waves
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.model import ApplyChild, CreateChild, DeleteChild, UpdateChild

OTHERS = Marks(prefix=MARKS.prefix, owner_id="cluster/default/other")
NOW = "2026-01-02T12:00:00Z"


def previewed(*manifests: JsonObject, existing: dict[str, JsonObject] | None = None, phase: str = "") -> list[PreviewedWave]:
    """The waves of these manifests, some of which exist by their names."""
    found = targets(*manifests)
    items = {each: replace(item, last_applied_at=NOW) for each, item in scheduled({}, found).items()}
    if phase:
        items = {each: replace(item, phase=phase, status="") for each, item in items.items()}  # type: ignore[arg-type]
    objects = {target.key: (existing or {})[target.key.name] for target in found if target.key.name in (existing or {})}
    return list(previewed_waves(found, items, objects, RULES))


def only(waves: list[PreviewedWave]) -> PreviewedObject:
    """The only object of the only wave."""
    [wave] = waves
    [found] = wave.objects
    return found


def the_target(name: str = "a", **settings: str) -> Target:
    """The target of one ConfigMap."""
    return targets(manifest(name=name, **settings))[0]


def test_all_waves_are_shown_in_their_order_though_nothing_is_ready():
    waves = previewed(
        manifest(name="late", apply_order="2"), manifest("Deployment", "web", api_version="apps/v1"), manifest("Namespace", "n")
    )

    assert [(wave.title, [f"{each.verb} {each.key.name}" for each in wave.objects]) for wave in waves] == [
        ("wave 0", ["create n", "create web"]),
        ("wave 2", ["create late"]),
    ]


LIVE: dict[str, tuple[dict[str, str], JsonObject, str, str, type | None]] = {
    # what it shows: (settings, the live object, the verb, the reason, the action)
    "as desired": ({}, live(the_target()), "keep", "it is as desired", None),
    "another manifest": ({}, live(the_target(), digest="other"), "update", "its manifest changed", UpdateChild),
    "a drifted field": (
        {},
        {**live(the_target()), "metadata": {**live(the_target(), marks=MARKS)["metadata"], "annotations": {}}},  # type: ignore[dict-item]
        "update",
        "its manifest changed",
        UpdateChild,
    ),
    "nobody's": ({}, live(the_target(), marks=None), "adopt", "it is adopted", UpdateChild),
    "another's": ({}, live(the_target(), marks=OTHERS), "refuse", "ConfigMap default/a exists and is another's", None),
    "being deleted": ({}, going(live(the_target())), "wait", "it is being deleted", None),
    "made again": (
        {"update_policy": "recreate"},
        live(the_target(update_policy="recreate"), digest="other"),
        "recreate",
        "its manifest changed",
        DeleteChild,
    ),
    "applied": (
        {"update_policy": "ssa-merge"},
        live(the_target(update_policy="ssa-merge"), digest="other"),
        "update",
        "its manifest changed",
        ApplyChild,
    ),
}


@pytest.mark.parametrize("case", LIVE.values(), ids=LIVE.keys())
def test_object_that_exists(case: tuple[dict[str, str], JsonObject, str, str, type | None]):
    settings, present, verb, reason, action = case

    found = only(previewed(manifest(name="a", **settings), existing={"a": present}))

    assert (found.verb, found.reason.startswith(reason), found.live) == (verb, True, present)
    assert (type(found.action) if found.action is not None else None) == action


def test_object_that_does_not_exist_shows_what_would_be_created():
    found = only(previewed(manifest(name="a")))

    assert isinstance(found.action, CreateChild)
    assert (found.live, found.reason) == (None, "it does not exist")


def test_object_that_is_made_again_shows_its_successor():
    target = the_target(update_policy="recreate")

    found = only(previewed(manifest(name="a", update_policy="recreate"), existing={"a": live(target, digest="other")}))

    assert found.successor == MARKS.on(target.obj, digest=target.digest)


def test_object_of_a_kind_that_comes_later_is_created_then():
    waves = previewed(api_service(), manifest("Metric", "m", api_version="metrics.example.com/v1"))

    [metric] = [each for each in waves[0].objects if each.key.name == "m"]
    assert (metric.verb, metric.reason) == ("create", "its kind is not served yet")


def test_object_is_purged_at_the_end_of_its_wave():
    waves = previewed(manifest(name="hook", purge_order="0"), manifest(name="late", apply_order="1"))

    assert [f"{wave.title}: {each.verb} {each.key.name}" for wave in waves for each in wave.objects] == [
        "wave 0: create hook",
        "wave 0: purge hook",
        "wave 1: create late",
    ]


def test_object_that_was_purged_is_not_made_again():
    found = only(previewed(manifest(name="hook", purge_order="0"), phase="Completed"))

    assert (found.verb, found.reason) == ("keep", "it was purged")


def removed(
    *items: Item, existing: dict[ObjectKey, JsonObject], users: dict[ObjectKey, list[str]] | None = None, occasion: str = "apply"
) -> list[str]:
    """What would become of these items."""
    inventory = {item.key: item for item in items}
    waves = previewed_removal(inventory, existing, RULES, occasion=occasion, users=users or {})  # type: ignore[arg-type]
    return [f"{wave.title}: {each.verb} {each.key.name}: {each.reason}" for wave in waves for each in wave.objects]


def gone_item(name: str = "a", **fields: object) -> Item:
    """The item of an object that is no longer desired."""
    return Item(key=key(name), version="v1", phase="ScheduledForDeletion", **fields)  # type: ignore[arg-type]


def test_objects_go_in_the_order_of_their_deletion():
    existing = {key(name): live(the_target(name)) for name in ("a", "b")}

    assert removed(gone_item("a", delete_order=1), gone_item("b", delete_order=-1), existing=existing) == [
        "deletion wave -1: delete b: it is no longer desired",
        "deletion wave 1: delete a: it is no longer desired",
    ]


REMOVALS: dict[str, tuple[Item, JsonObject | None, list[str], str]] = {
    # what it shows: (the item, the live object, who else needs it, the line)
    "orphaned by its policy": (gone_item(delete="Orphan"), live(the_target()), [], "orphan a: its delete policy is Orphan"),
    "not ours any more": (gone_item(), live(the_target(), marks=None), [], "orphan a: it is nobody's"),
    "going already": (gone_item(), going(live(the_target())), [], "wait a: it is being deleted"),
    "gone already": (gone_item(), None, [], "keep a: it is gone already"),
    "needed by others": (gone_item(), live(the_target()), ["Widget team/x"], "block a: needed by Widget team/x"),
}


@pytest.mark.parametrize("case", REMOVALS.values(), ids=REMOVALS.keys())
def test_object_that_has_to_go(case: tuple[Item, JsonObject | None, list[str], str]):
    item, present, users, line = case

    existing = {item.key: present} if present is not None else {}

    assert removed(item, existing=existing, users={item.key: users}) == [f"deletion wave 0: {line}"]


def test_whole_component_goes_when_it_is_deleted():
    item = replace(gone_item(), digest="d", phase="Ready")

    assert removed(item, existing={item.key: live(the_target())}, occasion="delete") == [
        "deletion wave 0: delete a: the component is deleted"
    ]


def test_namespace_goes_after_what_is_in_it():
    space = Item(key=ObjectKey("", "Namespace", "", "default"), version="v1", phase="ScheduledForDeletion")
    spaces = {space.key: live(targets(manifest("Namespace", "default"))[0])}

    lines = removed(space, gone_item(), existing={key("a"): live(the_target()), **spaces})

    assert [line.split(": ")[1] for line in lines] == ["delete a", "delete default"]
