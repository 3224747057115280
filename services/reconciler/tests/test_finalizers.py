"""Finalizers in syncs: what is written, in which order, and what remains when a parent is deleted."""

import pytest
from builders import CONFIG_MAPS, THINGS, a_controller, a_parent, config_map, stored
from fake_api import refused
from syncing import Sync

from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.common.objects import unstructured

OURS = "metacontroller.io/compositecontroller-things"


def with_finalize_hook(*, label: str = "") -> JsonObject:
    """A controller with a finalize hook. It selects its parents by a label if one is given."""
    controller = a_controller()
    spec = unstructured.child_object(controller, "spec")
    unstructured.child_object(spec, "hooks")["finalize"] = {"webhook": {"url": "http://hook.example/finalize"}}
    if label:
        unstructured.child_object(spec, "parentResource")["labelSelector"] = {"matchLabels": {"served": label}}
    return controller


def a_going_parent(*finalizers: str) -> JsonObject:
    """A parent whose deletion waits for these finalizers."""
    parent = a_parent(deleting=True)
    unstructured.metadata(parent)["finalizers"] = [*finalizers]
    return parent


async def test_finalizer_is_there_before_anything_that_may_need_cleaning_up():
    sync = Sync(lambda _: {"children": [config_map("a")]}, controller=with_finalize_hook())
    sync.api.failing["create", "a"] = Forbidden(refused(403, "Forbidden"))

    await sync.run()

    assert unstructured.finalizers(sync.parent) == [OURS]


async def test_finalizer_costs_one_write_and_no_read():
    sync = Sync(lambda _: {}, controller=with_finalize_hook())

    await sync.run()

    assert dict(sync.api.requests) == {"replace": 1, "replace status": 1}


async def test_finalize_hook_is_told_so_and_may_take_its_time():
    sync = Sync(lambda _: {"children": [config_map("b")]}, controller=with_finalize_hook(), parent=a_going_parent(OURS))
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent()))

    await sync.run()

    assert sync.hooks.requests[0]["finalizing"] is True
    assert list(sync.children) == ["b"]
    assert unstructured.finalizers(sync.parent) == [OURS]


async def test_finalized_parent_goes_with_one_write():
    sync = Sync(lambda _: {"finalized": True, "status": {"phase": "Gone"}}, controller=with_finalize_hook(), parent=a_going_parent(OURS))
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent()))

    report = await sync.run()

    assert sync.api.all_of(THINGS) == []
    assert dict(sync.api.requests) == {"replace": 1}
    assert list(sync.children) == ["a"]
    assert report.writes[0].is_deletion


async def test_finalized_parent_that_others_hold_keeps_its_status_and_theirs():
    parent = a_going_parent("theirs", OURS)
    sync = Sync(lambda _: {"finalized": True, "status": {"phase": "Done"}}, controller=with_finalize_hook(), parent=parent)

    await sync.run()

    assert unstructured.finalizers(sync.parent) == ["theirs"]
    assert unstructured.child_object(sync.parent, "status")["phase"] == "Done"


async def test_finalized_from_an_alive_parents_hook_causes_no_churn():
    sync = Sync(lambda _: {"finalized": True}, controller=with_finalize_hook())
    await sync.run()

    await sync.run()
    await sync.run()

    assert dict(sync.api.requests) == {}
    assert unstructured.finalizers(sync.parent) == [OURS]


async def test_deselected_parent_is_finalized_children_first():
    parent = a_parent()
    unstructured.metadata(parent)["finalizers"] = [OURS]
    sync = Sync(lambda _: {"finalized": True}, controller=with_finalize_hook(label="yes"), parent=parent)
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent()))

    await sync.run()

    assert sync.hooks.requests[0]["finalizing"] is True
    assert (sync.children, unstructured.finalizers(sync.parent)) == ({}, [])
    await sync.run()
    assert len(sync.hooks.requests) == 1


async def test_deselected_parent_is_not_let_go_while_a_child_of_it_can_not_be_deleted():
    parent = a_parent()
    unstructured.metadata(parent)["finalizers"] = [OURS]
    sync = Sync(lambda _: {"finalized": True}, controller=with_finalize_hook(label="yes"), parent=parent)
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent()))
    sync.api.failing["delete", "a"] = Forbidden(refused(403, "Forbidden"))

    await sync.run()

    assert unstructured.finalizers(sync.parent) == [OURS]


async def test_parent_that_was_never_selected_is_left_alone():
    sync = Sync(lambda _: {}, controller=with_finalize_hook(label="yes"))

    report = await sync.run()

    assert (report.result, sync.hooks.requests, dict(sync.api.requests)) == ("done", [], {})


@pytest.mark.parametrize("finalizer", ["foregroundDeletion", "orphan"])
async def test_what_the_garbage_collector_deals_with_is_left_to_it(finalizer: str):
    sync = Sync(lambda _: {}, controller=with_finalize_hook(), parent=a_going_parent(OURS, finalizer))
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=a_parent()))

    await sync.run()

    assert list(sync.children) == ["a"]


async def test_finalizer_of_a_hook_that_was_taken_away_goes_first():
    sync = Sync(lambda _: {}, parent=a_going_parent(OURS))

    await sync.run()

    assert sync.api.all_of(THINGS) == []
    assert sync.hooks.requests == []


async def test_deselected_parents_bad_selector_does_not_keep_a_useless_finalizer():
    parent = a_parent(spec={})
    unstructured.metadata(parent)["finalizers"] = [OURS]
    sync = Sync(lambda _: {}, parent=parent)

    await sync.run()

    assert unstructured.finalizers(sync.parent) == []
