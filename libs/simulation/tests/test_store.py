"""The model of the API server, request by request. tests/e2e/test_simulated_api.py compares it with a real one."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.simulation.cluster.objects import Refusal, merge_patched
from metaloop.simulation.cluster.store import Event, Key, Store
from metaloop.simulation.resources import CONFIG_MAPS, THINGS

A = Key("default", "a")


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def store(events: list[Event]) -> Store:
    store = Store(clock=lambda: "2026-01-01T00:00:00Z", on_change=lambda _, event: events.append(event))
    store.serve(THINGS, CONFIG_MAPS)
    return store


def thing(**spec: object) -> JsonObject:
    return {"metadata": {"name": "a"}, "spec": dict(spec)}  # type: ignore[dict-item]


def test_a_new_object_gets_uid_version_and_generation(store: Store):
    made = store.create(THINGS, "default", {**thing(), "status": {"forged": True}})

    assert unstructured.uid(made)
    assert unstructured.generation(made) == 1
    assert "status" not in made


def test_a_name_is_taken_once(store: Store):
    store.create(THINGS, "default", thing())

    with pytest.raises(Refusal, match="already exists"):
        store.create(THINGS, "default", thing())


def test_an_update_of_an_older_version_is_a_conflict(store: Store):
    first = store.create(THINGS, "default", thing())
    store.update(THINGS, A, {**first, "spec": {"changed": True}})

    with pytest.raises(Refusal, match="has been modified") as refusal:
        store.update(THINGS, A, {**first, "spec": {"late": True}})
    assert refusal.value.code == 409


def test_an_update_that_changes_nothing_makes_no_version(store: Store, events: list[Event]):
    first = store.create(THINGS, "default", thing())

    assert store.update(THINGS, A, first) == first
    assert len(events) == 1


def test_status_and_spec_are_written_apart(store: Store):
    first = store.create(THINGS, "default", thing(size=1))
    second = store.update(THINGS, A, {**first, "status": {"ready": True}, "spec": {"size": 2}}, subresource="status")

    assert (second["status"], second["spec"], unstructured.generation(second)) == ({"ready": True}, {"size": 1}, 1)


def test_a_changed_spec_is_another_generation(store: Store):
    first = store.create(THINGS, "default", thing(size=1))

    assert unstructured.generation(store.update(THINGS, A, {**first, "spec": {"size": 2}})) == 2


def test_a_deletion_waits_for_finalizers(store: Store, events: list[Event]):
    first = store.create(THINGS, "default", {"metadata": {"name": "a", "finalizers": ["f"]}})
    deleting = store.delete(THINGS, A)
    metadata = {**unstructured.metadata(deleting), "finalizers": []}
    store.update(THINGS, A, {**deleting, "metadata": metadata})

    assert unstructured.is_deleting(deleting)
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert unstructured.uid(first) not in store.by_uid


def test_nothing_is_finalized_by_somebody_new_while_it_is_deleted(store: Store):
    store.create(THINGS, "default", {"metadata": {"name": "a", "finalizers": ["f"]}})
    deleting = store.delete(THINGS, A)

    with pytest.raises(Refusal, match="no new finalizers"):
        store.update(THINGS, A, {**deleting, "metadata": {**unstructured.metadata(deleting), "finalizers": ["f", "g"]}})


@pytest.mark.parametrize(("uid", "version"), [("other", ""), ("", "1")])
def test_a_deletion_has_preconditions(store: Store, uid: str, version: str):
    store.create(THINGS, "default", thing())

    with pytest.raises(Refusal, match="Precondition failed"):
        store.delete(THINGS, A, uid=uid, version=version)


def test_objects_whose_owners_are_gone_dangle(store: Store):
    owner = store.create(THINGS, "default", thing())
    reference: JsonObject = {"apiVersion": THINGS.api_version, "kind": "Thing", "name": "a", "uid": unstructured.uid(owner)}
    store.create(CONFIG_MAPS, "default", {"metadata": {"name": "child", "ownerReferences": [reference]}})

    before = [key.name for _, key, _ in store.dangling()]
    store.delete(THINGS, A)

    assert (before, [key.name for _, key, _ in store.dangling()]) == ([], ["child"])


def test_changes_are_forgotten_in_the_end(store: Store):
    version = int(unstructured.resource_version(store.create(THINGS, "default", thing())))
    store.create(CONFIG_MAPS, "default", thing())
    assert [event.type for event in store.collections[CONFIG_MAPS.id].since(version)] == ["ADDED"]

    store.compact()

    with pytest.raises(Refusal, match="too old") as refusal:
        store.collections[CONFIG_MAPS.id].since(version)
    assert refusal.value.code == 410


@pytest.mark.parametrize(
    ("target", "patch", "merged"),
    [
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
    ],
)
def test_merge_patches_follow_their_rfc(target: JsonObject, patch: JsonObject, merged: JsonObject):
    assert merge_patched(target, patch) == merged
