"""The inventory, pass by pass. Each step compares the exact inventory."""

from dataclasses import replace

import pytest
from components import NOW, TIMESTAMP, crd, key, manifest, target, targets, widget
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.api.policies import Policies
from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.component.inventory import (
    PHASES,
    Item,
    inventory_in,
    inventory_json,
    managed_types_in,
    scheduled,
)
from metaloop.reconciler.core.component.managed_types import ManagedType
from metaloop.reconciler.core.component.target import Target


def new_item(of: Target) -> Item:
    """The item that a target has when it is new."""
    return Item(key=of.key, version=of.version, digest=of.digest, status="InProgress", managed_types=of.managed_types)


def ready(item: Item) -> Item:
    """The same item, applied and ready."""
    return replace(item, phase="Ready", status="Current", last_applied_at=TIMESTAMP)


def test_new_object_is_scheduled_for_application():
    assert scheduled({}, [target()]) == {key(): new_item(target())}


def test_inventory_of_objects_that_did_not_change_stays_as_it_is():
    before = {key(): ready(new_item(target()))}

    assert scheduled(before, [target()]) == before


def test_changed_object_is_scheduled_again_and_remembers_when_it_was_applied():
    before, changed = {key(): ready(new_item(target()))}, target({**manifest(), "data": {"k": "v"}})

    [item] = scheduled(before, [changed]).values()

    assert item == replace(before[key()], digest=changed.digest, phase="ScheduledForApplication", status="InProgress")


def test_object_that_is_no_longer_desired_is_scheduled_for_deletion():
    before = {key(): ready(new_item(target()))}

    [item] = scheduled(before, []).values()

    assert item == replace(before[key()], digest="", phase="ScheduledForDeletion", status="Terminating")


@pytest.mark.parametrize("phase", ["ScheduledForDeletion", "Deleting"])
def test_object_that_is_going_already_stays_where_it_is(phase: str):
    going = Item(key=key(), version="v1", phase=phase, status="Terminating")  # type: ignore[arg-type]

    assert scheduled({key(): going}, []) == {key(): going}


def test_object_that_is_desired_again_while_it_goes_is_scheduled_for_application():
    going = replace(new_item(target()), digest="", phase="Deleting", status="Terminating")

    [item] = scheduled({key(): going}, [target()]).values()

    assert (item.phase, item.status, item.digest) == ("ScheduledForApplication", "InProgress", target().digest)


def test_last_policies_of_an_object_stay_in_force_once_it_is_no_longer_desired():
    before = scheduled({}, [target(manifest(delete_policy="orphan", delete_order="7"))])

    [item] = scheduled(before, []).values()

    assert (item.delete, item.delete_order) == ("Orphan", 7)


def test_changed_policies_are_taken_over():
    before = {key(): ready(new_item(target()))}

    [item] = scheduled(before, [target(manifest(), policies=Policies(delete="Orphan", adoption="Never", update="SsaMerge"))]).values()

    assert (item.delete, item.adoption, item.update, item.phase) == ("Orphan", "Never", "SsaMerge", "Ready")


def test_new_version_of_a_kind_keeps_the_item():
    before = {key(): replace(ready(new_item(target())), version="v0")}

    [item] = scheduled(before, [target()]).values()

    assert (item.version, item.phase) == ("v1", "Ready")


def test_life_of_two_objects_pass_by_pass():
    a, b = targets(manifest(name="a"), manifest("Service", "b"))
    first = scheduled({}, [a, b])
    assert first == {a.key: new_item(a), b.key: new_item(b)}

    second = scheduled({name: ready(item) for name, item in first.items()}, [b])
    assert second == {
        a.key: replace(ready(new_item(a)), digest="", phase="ScheduledForDeletion", status="Terminating"),
        b.key: ready(new_item(b)),
    }

    third = scheduled({b.key: second[b.key]}, [])
    assert third == {b.key: replace(ready(new_item(b)), digest="", phase="ScheduledForDeletion", status="Terminating")}


def test_types_in_the_inventory_are_those_of_all_items_also_of_those_that_go():
    inventory = scheduled(scheduled({}, targets(crd(), crd(kind="Gadget"), widget())), targets(crd()))

    assert managed_types_in(inventory) == (ManagedType("example.com", "*", "Widget"), ManagedType("example.com", "*", "Gadget"))


# -- in the status -----------------------------------------------------------------------------------------------------

ITEMS = st.builds(
    Item,
    key=st.builds(key, st.text(min_size=1), kind=st.text(min_size=1), group=st.text(), namespace=st.text()),
    version=st.text(),
    adoption=st.sampled_from(["IfUnowned", "Never", "Always"]),
    apply_order=st.integers(-(2**15), 2**15 - 1),
    delete_order=st.integers(-(2**15), 2**15 - 1),
    managed_types=st.lists(st.sampled_from([ManagedType("g", "*", "K"), ManagedType("", "v1", "*")])).map(tuple),
    digest=st.text(),
    phase=st.sampled_from(PHASES),
    status=st.text(),
    last_applied_at=st.text(),
)


@given(st.lists(ITEMS, unique_by=lambda item: item.key))
def test_inventory_is_read_back_as_it_was_written(items: list[Item]):
    inventory = {item.key: item for item in items}
    written: list[JsonValue] = [*inventory_json(inventory)]

    assert inventory_in({"inventory": written}) == inventory


def test_empty_fields_are_left_out_of_the_status():
    [raw] = inventory_json({key(): Item(key=key(), version="v1", digest="d")})

    assert raw == {
        "version": "v1",
        "kind": "ConfigMap",
        "namespace": "default",
        "name": "a",
        "adoptionPolicy": "IfUnowned",
        "reconcilePolicy": "OnObjectChange",
        "updatePolicy": "Replace",
        "deletePolicy": "Delete",
        "applyOrder": 0,
        "deleteOrder": 0,
        "digest": "d",
        "phase": "ScheduledForApplication",
    }


@pytest.mark.parametrize(
    "status",
    [{}, {"inventory": None}, {"inventory": ["x", {}]}, {"inventory": [{"kind": "A", "name": "a", "phase": "Dancing"}]}],
)
def test_what_is_no_item_is_left_out(status: JsonObject):
    assert inventory_in(status) == {}


@pytest.mark.parametrize(("group", "api_version"), [("", "v1"), ("apps", "apps/v1")])
def test_item_knows_the_api_version_of_its_object(group: str, api_version: str):
    assert Item(key=key(group=group), version="v1").api_version == api_version


@pytest.mark.parametrize(("at", "seconds"), [(TIMESTAMP, 0), ("2026-01-02T11:00:00Z", 3600), ("", None), ("yesterday", None)])
def test_item_knows_how_long_ago_its_object_was_applied(at: str, seconds: float | None):
    assert Item(key=key(), version="v1", last_applied_at=at).applied_seconds_ago(NOW) == seconds
