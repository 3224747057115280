"""Syncs from a granted claim to the report, with an API server and hooks in memory."""

from collections.abc import Callable

import pytest
from builders import CONFIG_MAPS, PARENT_UID, THINGS, a_parent, config_map, stored
from fake_api import refused
from fake_hooks import FakeLease
from syncing import Sync

from metaloop.common.errors import Conflict, LeaseLost, MetaloopError, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden, NotFound, ServerTimeout, Unanswered, Unreadable
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.observation import Granted, Observation
from metaloop.reconciler.errors import HookThrottled


def wants(*names: str, status: JsonObject | None = None) -> Callable[[JsonObject], JsonObject]:
    """A hook that always desires the ConfigMaps of these names."""
    return lambda _: {"children": [config_map(name) for name in names], "status": status}


def counts(*names: str) -> Callable[[JsonObject], JsonObject]:
    """A hook that desires these ConfigMaps, and counts the observed ones in the status."""

    def hook(request: JsonObject) -> JsonObject:
        groups = unstructured.child_object(request, "children")
        return {
            "children": [config_map(name) for name in names],
            "status": {"seen": len(unstructured.child_object(groups, "ConfigMap.v1"))},
        }

    return hook


async def test_new_parent_costs_its_children_two_status_writes_and_three_hook_calls():
    sync = Sync(counts("a", "b", "c"))
    total: dict[str, int] = {}

    for _ in range(3):
        await sync.run()
        for verb, number in sync.api.requests.items():
            total[verb] = total.get(verb, 0) + number

    assert total == {"create": 3, "replace status": 2}
    assert len(sync.hooks.requests) == 3
    assert sync.parent["status"] == {"seen": 3, "observedGeneration": 3}


async def test_at_rest_nothing_is_read_or_written():
    sync = Sync(counts("a", "b", "c"))
    for _ in range(3):
        await sync.run()

    report = await sync.run()

    assert dict(sync.api.requests) == {}
    assert (report.result, report.writes, report.reason) == ("done", [], "")


async def test_created_child_is_controlled_by_the_parent_and_remembers_what_was_applied():
    sync = Sync(wants("a"))

    report = await sync.run()

    child = sync.children["a"]
    owner = controller_ref(child)
    assert owner is not None
    assert owner.uid == PARENT_UID
    assert unstructured.annotations(child)["metacontroller.k8s.io/last-applied-configuration"] == (
        '{"apiVersion":"v1","data":{"key":"value"},"kind":"ConfigMap","metadata":{"labels":{"app":"mine"},"name":"a","namespace":"default"}}'
    )
    assert [(write.name, write.uid, write.resource_version) for write in report.writes if write.name == "a"] == [
        ("a", unstructured.uid(child), unstructured.resource_version(child))
    ]


async def test_drifted_child_is_repaired_and_fields_of_others_are_kept():
    sync = Sync(wants("a"))
    await sync.run()
    child = sync.children["a"]
    sync.api.put(CONFIG_MAPS, {**child, "data": {"key": "drifted", "theirs": "kept"}})

    await sync.run()

    assert sync.children["a"]["data"] == {"key": "value", "theirs": "kept"}
    assert sync.api.requests["replace"] == 1


async def test_child_that_is_no_longer_desired_is_deleted():
    sync = Sync(wants("a", "b"))
    await sync.run()
    sync.hooks.answer = wants("b")

    report = await sync.run()

    assert list(sync.children) == ["b"]
    assert [(write.name, write.is_deletion) for write in report.writes] == [("a", True)]


async def test_valid_answer_without_children_deletes_them():
    sync = Sync(wants("a"))
    await sync.run()
    sync.hooks.answer = lambda _: {}

    await sync.run()

    assert sync.children == {}


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>Welcome</html>",
        b"null",
        b"[]",
        b'{"children": [null]}',
        b'{"children": [{"apiVersion": "v1", "metadata": {"name": "x"}}]}',
        b'{"children": {"a": 1}}',
        b'{"children": [], "status": 1}',
        b'{"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "labels": {"app": "mine"}}}]}',
        b'{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "labels": {"app": "other"}}}]}',
    ],
)
async def test_garbage_from_a_hook_writes_nothing_and_is_told_on_the_parent(answer: bytes):
    sync = Sync(wants("a"))
    await sync.run()
    sync.hooks.answer = lambda _: answer

    report = await sync.run()

    assert dict(sync.api.requests) == {}
    assert list(sync.children) == ["a"]
    assert (report.result, report.reason) == ("retry", "InvalidAnswer")
    [(event_type, reason, message)] = sync.recorder.told
    assert (event_type, reason) == ("Warning", "SyncError")
    assert message.startswith("Sync error: ")


async def test_matching_orphan_is_adopted_after_one_live_look_at_the_parent():
    sync = Sync(wants("a"))
    sync.api.put(CONFIG_MAPS, stored(config_map("a")))
    sync.api.put(CONFIG_MAPS, stored(config_map("b")))
    sync.hooks.answer = wants("a", "b")

    report = await sync.run()

    owners = [controller_ref(child) for child in sync.children.values()]
    assert [owner.uid for owner in owners if owner] == [PARENT_UID, PARENT_UID]
    assert sync.api.requests["get"] == 1
    assert report.result == "done"


async def test_adopted_child_is_shown_to_the_hook_and_updated_in_the_same_sync():
    sync = Sync(wants("a"))
    sync.api.put(CONFIG_MAPS, stored(config_map("a", data={"key": "old"})))

    report = await sync.run()

    children = unstructured.child_object(sync.hooks.requests[0], "children")
    shown = unstructured.child_object(unstructured.child_object(children, "ConfigMap.v1"), "a")
    assert controller_ref(shown) is not None
    assert sync.children["a"]["data"] == {"key": "value"}
    assert report.result == "done"


async def test_nothing_is_adopted_for_a_parent_that_was_deleted_meanwhile():
    sync = Sync(wants("a"))
    sync.api.put(CONFIG_MAPS, stored(config_map("a")))
    granted = sync.observe()
    sync.api.put(THINGS, a_parent(deleting=True))

    report = await sync.run(granted)

    assert controller_ref(sync.children["a"]) is None
    assert (report.result, report.reason) == ("retry", "Conflict")
    assert sync.recorder.told == []


async def test_child_whose_labels_no_longer_match_is_released_and_survives():
    sync = Sync(lambda _: {})
    sync.api.put(CONFIG_MAPS, stored(config_map("a", labels={"app": "other"}), owner=a_parent()))

    report = await sync.run()

    assert controller_ref(sync.children["a"]) is None
    assert report.result == "done"


async def test_one_childs_failure_stops_no_other_child_and_not_the_status():
    sync = Sync(wants("a", "b", "c", status={"phase": "Ready"}))
    sync.api.failing["create", "b"] = Forbidden(refused(403, "Forbidden"))

    report = await sync.run()

    assert sorted(sync.children) == ["a", "c"]
    assert sync.parent["status"] == {"phase": "Ready", "observedGeneration": 3}
    assert (report.result, report.reason) == ("retry", "Forbidden")
    assert {write.name for write in report.writes} == {"a", "c", "parent"}
    assert "create ConfigMap default/b" in report.message


async def test_childs_failure_is_told_though_the_status_met_a_conflict_too():
    sync = Sync(wants("a", "b", status={"phase": "Ready"}))
    sync.api.failing["create", "b"] = Forbidden(refused(403, "Forbidden"))
    sync.api.failing["replace status", "parent"] = Conflict("always")

    report = await sync.run()

    assert (report.result, report.reason) == ("retry", "Forbidden")
    assert "create ConfigMap default/b" in sync.recorder.told[0][2]


@pytest.mark.parametrize(
    ("failure", "is_told"), [(Conflict("always"), False), (Forbidden(refused(403, "Forbidden")), True)], ids=["a conflict", "a refusal"]
)
async def test_status_that_could_not_be_written_fails_the_sync_after_its_children(failure: MetaloopError, *, is_told: bool):
    sync = Sync(wants("a", status={"phase": "Ready"}))
    sync.api.failing["replace status", "parent"] = failure

    report = await sync.run()

    assert list(sync.children) == ["a"]
    assert (report.result, report.reason) == ("retry", failure.fault.reason)
    assert bool(sync.recorder.told) is is_told


FAILURES: dict[str, tuple[str, MetaloopError, str, str, bool]] = {
    # what it shows: (verb, error, result, reason, whether there is an event)
    "a child deleted meanwhile": ("delete", NotFound(refused(404, "NotFound")), "done", "", False),
    "a child replaced meanwhile": ("delete", Conflict("another uid"), "retry", "Conflict", False),
    "a deletion that is refused": ("delete", Forbidden(refused(403, "Forbidden")), "retry", "Forbidden", True),
    "an update of a child deleted meanwhile": ("replace", NotFound(refused(404, "NotFound")), "retry", "Conflict", False),
    "an update of a child changed meanwhile": ("replace", Conflict("another resourceVersion"), "retry", "Conflict", False),
    "an update that is refused": ("replace", Forbidden(refused(403, "Forbidden")), "retry", "Forbidden", True),
    "a creation that is refused": ("create", Forbidden(refused(403, "Forbidden")), "retry", "Forbidden", True),
    "an API server that is away": ("create", Unavailable("no route"), "retry", "Unavailable", False),
}


@pytest.mark.parametrize("error", [Unanswered("the connection broke"), ServerTimeout("took too long"), Unreadable("<html>")], ids=repr)
async def test_write_whose_answer_was_lost_is_reported_as_one_that_may_be_there(error: MetaloopError):
    sync = Sync(wants("a", "b"))
    sync.api.failing["create", "b"] = error

    report = await sync.run()

    assert report.result == "retry"
    assert [write.name for write in report.writes if write.is_uncertain] == ["b"]


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_each_failure_of_a_child_ends_the_sync_in_its_way(failure: tuple[str, MetaloopError, str, str, bool]):
    verb, error, result, reason, is_told = failure
    sync = Sync(wants("updated", "created"))
    for name in ("deleted", "updated"):
        sync.api.put(CONFIG_MAPS, stored(config_map(name, data={"key": "old"}), owner=a_parent()))
    sync.api.failing[verb, {"create": "created", "replace": "updated", "delete": "deleted"}[verb]] = error

    report = await sync.run()

    assert (report.result, report.reason) == (result, reason)
    assert bool(sync.recorder.told) is is_told


TAKEN: dict[str, tuple[JsonObject, str, bool]] = {
    # who holds the name: (the object, the reason, whether there is an event)
    "another controller's": (
        stored(config_map("a"), owner=a_parent(name="other", uid="uid-of-other")),
        "NameTaken",
        True,
    ),
    "nobody's that is labelled otherwise": (stored(config_map("a", labels={"app": "other"})), "NameTaken", True),
    "ours, and not yet in the cache": (stored(config_map("a"), owner=a_parent()), "Conflict", False),
    "an orphan that is not yet in the cache": (stored(config_map("a")), "Conflict", False),
    "one that is being deleted": (
        stored(config_map("a", labels={"app": "other"}), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        "Conflict",
        False,
    ),
}


@pytest.mark.parametrize("taken", TAKEN.values(), ids=TAKEN.keys())
async def test_a_name_that_is_taken_is_told_only_where_waiting_does_not_help(taken: tuple[JsonObject, str, bool]):
    holder, reason, is_told = taken
    sync = Sync(wants("a"))
    granted = sync.observe()
    sync.api.put(CONFIG_MAPS, holder)
    before = sync.children

    report = await sync.run(granted)

    assert (report.result, report.reason) == ("retry", reason)
    assert bool(sync.recorder.told) is is_told
    assert sync.children == before


async def test_children_of_a_deleting_parent_are_left_to_the_garbage_collector():
    sync = Sync(wants("a", status={"phase": "Going"}), parent=a_parent(deleting=True))

    report = await sync.run()

    assert sync.children == {}
    assert unstructured.child_object(sync.parent, "status")["phase"] == "Going"
    assert report.result == "done"


async def test_wish_for_a_resync_is_reported_even_when_the_rest_fails():
    sync = Sync(lambda _: {"resyncAfterSeconds": 2.5, "children": [config_map("a", labels={"app": "other"})]})

    report = await sync.run()

    assert (report.result, report.resync_after_seconds) == ("retry", 2.5)


async def test_throttled_hook_is_no_failure_and_its_wish_is_reported():
    sync = Sync(wants())

    def busy(_: JsonObject) -> JsonObject:
        raise HookThrottled(12.0, fault=Fault.CIRCUIT_OPEN, message="circuit open: hook:80 did not answer")

    sync.hooks.answer = busy

    report = await sync.run()

    assert (report.result, report.after_seconds) == ("throttled", 12.0)
    assert (report.reason, report.message) == ("CircuitOpen", "circuit open: hook:80 did not answer")
    assert sync.recorder.told == []


async def test_parent_that_selects_nothing_is_rejected_before_its_hook_is_called():
    sync = Sync(wants("a"), parent=a_parent(spec={}))

    report = await sync.run()

    assert (report.result, report.reason) == ("rejected", "InvalidParent")
    assert sync.hooks.requests == []
    assert "spec.selector" in sync.recorder.told[0][2]


async def test_hook_is_not_called_after_a_lost_lease():
    sync = Sync(wants("a"))

    with pytest.raises(LeaseLost):
        await sync.run(lease=FakeLease(requests_left=0))

    assert sync.hooks.requests == []
    assert sync.api.requests.total() == 0


async def test_no_write_follows_a_lost_lease():
    sync = Sync(wants("a", "b"))

    with pytest.raises(LeaseLost):
        await sync.run(lease=FakeLease(requests_left=2))

    assert len(sync.hooks.requests) == 1
    assert sync.api.requests.total() == 1


async def test_a_resource_that_the_watcher_does_not_see_deletes_nothing():
    sync = Sync(wants("a"))
    await sync.run()
    seen = sync.observe().observation
    blind = Observation(controller=seen.controller, parent_resource=THINGS, parent=seen.parent, children=[])

    report = await sync.run(Granted(lease="lease-1", lease_seconds=5.0, observation=blind))

    assert (report.result, report.reason) == ("retry", "Unavailable")
    assert list(sync.children) == ["a"]
