"""What is done about objects that have to go: the order, the policies, and whose they are."""

from dataclasses import replace

import pytest
from components import MARKS, PREFIX, api_service, crd, going, live, manifest, target, targets, widget
from counting import CountingInventory

from metaloop.common.api.policies import DeletePolicy, Policies
from metaloop.common.json import JsonObject
from metaloop.reconciler.core.component.identity import Marks, ObjectKey
from metaloop.reconciler.core.component.inventory import Item, managed_types_in, scheduled
from metaloop.reconciler.core.component.removal import Occasion, Removal, candidates, deleting, is_orphaned, removal_of
from metaloop.reconciler.core.component.removal import going as items_that_go

ANOTHER = Marks(prefix=PREFIX, owner_id="cluster/default/other")


def inventory(*manifests: JsonObject) -> dict[ObjectKey, Item]:
    """The inventory of a component whose objects are all ready."""
    return {key: replace(item, phase="Ready", status="Current") for key, item in scheduled({}, targets(*manifests)).items()}


def names(items: dict[ObjectKey, Item], occasion: Occasion = "delete") -> list[str]:
    """The names of the candidates."""
    return [item.key.name for item in candidates(items, occasion, managed_types_in(items))]


def in_order(items: dict[ObjectKey, Item]) -> list[list[str]]:
    """The names of the candidates, pass by pass, if each pass removes them all."""
    passes: list[list[str]] = []
    while found := names(items):
        passes.append(found)
        items = {key: item for key, item in items.items() if key.name not in found}
    assert not items
    return passes


ORDERS: dict[str, tuple[tuple[JsonObject, ...], list[list[str]]]] = {
    "equal orders go together": ((manifest(name="a"), manifest(name="b")), [["a", "b"]]),
    "lower orders first": (
        (manifest(name="a", delete_order="1"), manifest(name="b"), manifest(name="c", delete_order="-1")),
        [["c"], ["b"], ["a"]],
    ),
    "namespaces after what is in them": ((manifest("Namespace", "n"), manifest(name="a", namespace="n")), [["a"], ["n"]]),
    "other namespaces at once": ((manifest("Namespace", "n"), manifest(name="a")), [["a", "n"]]),
    "instances before their type": ((crd(), widget()), [["w"], ["widgets.example.com"]]),
    "instances before all else of their wave": ((crd(), widget(), manifest(name="a")), [["w"], ["widgets.example.com", "a"]]),
    "instances of API services": (
        (api_service("m.io", "v1"), manifest("Metric", "m", api_version="m.io/v1", namespace="n")),
        [["m"], ["v1.m.io"]],
    ),
    "types with no instances": ((crd(),), [["widgets.example.com"]]),
    "nothing": ((), []),
}


@pytest.mark.parametrize(("objects", "expected"), ORDERS.values(), ids=ORDERS.keys())
def test_objects_go_in_order(objects: tuple[JsonObject, ...], expected: list[list[str]]):
    assert in_order(inventory(*objects)) == expected


def test_namespace_waits_for_an_object_of_a_later_wave():
    items = inventory(manifest("Namespace", "n"), manifest(name="a", namespace="n"), manifest(name="b"))
    later = {key: replace(item, delete_order=1) if key.name == "a" else item for key, item in items.items() if key.name != "b"}

    assert names(later) == []


def test_only_objects_that_are_no_longer_desired_go_while_the_component_stays():
    before = inventory(manifest(name="a"), manifest(name="b"))

    assert names(scheduled(before, targets(manifest(name="b"))), "apply") == ["a"]
    assert names(before, "apply") == []


def test_everything_goes_with_the_component_whatever_its_phase():
    before = inventory(manifest(name="a"), manifest(name="b"), manifest(name="c"))
    phases = dict(zip(before, ("Creating", "Completed", "Deleting"), strict=True))
    items = {key: replace(item, phase=phases[key]) for key, item in before.items()}  # type: ignore[arg-type]

    assert [item.key.name for item in items_that_go(items, "delete")] == ["a", "b", "c"]


# -- policies and owners -----------------------------------------------------------------------------------------------

ORPHANED: list[tuple[DeletePolicy, Occasion, bool]] = [
    ("Delete", "apply", False),
    ("Delete", "delete", False),
    ("Orphan", "apply", True),
    ("Orphan", "delete", True),
    ("OrphanOnApply", "apply", True),
    ("OrphanOnApply", "delete", False),
    ("OrphanOnDelete", "apply", False),
    ("OrphanOnDelete", "delete", True),
]


def removed(obj: JsonObject | None, *, policy: DeletePolicy = "Delete", occasion: Occasion = "delete") -> Removal:
    """What is done about an object."""
    [item] = scheduled({}, [target(policies=Policies(delete=policy))]).values()
    return removal_of([item], {item.key: obj} if obj is not None else {}, MARKS, occasion=occasion)


KEY = target().key
DELETE, FORGET, WAIT = Removal(delete=(KEY,)), Removal(forget=(KEY,)), Removal(pending=(KEY,))


@pytest.mark.parametrize(("policy", "occasion", "is_left"), ORPHANED)
def test_policy_says_when_an_object_is_left_alone(policy: DeletePolicy, occasion: Occasion, is_left: bool):
    assert removed(live(target()), policy=policy, occasion=occasion) == (FORGET if is_left else DELETE)
    assert is_orphaned(next(iter(scheduled({}, [target(policies=Policies(delete=policy))]).values())), occasion) is is_left


@pytest.mark.parametrize("policy", ["Delete", "Orphan", "OrphanOnApply", "OrphanOnDelete"])
@pytest.mark.parametrize("occasion", ["apply", "delete"])
@pytest.mark.parametrize("obj", [None, live(target(), marks=None), live(target(), marks=ANOTHER), going(live(target(), marks=ANOTHER))])
def test_object_that_is_gone_or_not_ours_leaves_the_inventory(policy: DeletePolicy, occasion: Occasion, obj: JsonObject | None):
    assert removed(obj, policy=policy, occasion=occasion) == FORGET


def test_object_that_is_being_deleted_is_waited_for():
    assert removed(going(live(target()))) == WAIT


def test_removal_is_over_once_nothing_is_left_to_delete_or_to_wait_for():
    assert [each.is_over for each in (DELETE, FORGET, WAIT, Removal())] == [False, True, False, True]


def test_item_of_an_object_that_is_deleted_says_so():
    [item] = inventory(manifest()).values()

    assert deleting(item) == replace(item, phase="Deleting", status="Terminating")


def test_time_grows_with_the_number_of_items_and_no_faster():
    spaces = [manifest("Namespace", f"n{index}") for index in range(100)]
    types = [crd(kind=f"Kind{index}") for index in range(100)]
    contents = [manifest(name="a", namespace=f"n{index}", delete_order="1") for index in range(100)]
    items = CountingInventory(inventory(*spaces, *types, *contents))

    found = candidates(items, "delete", managed_types_in({}))

    assert len(found) == len(types)
    assert items.looked_at <= 2 * len(items)
