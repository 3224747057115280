"""Deletion guards: the excessive deletions of an answer are held back until somebody confirms them."""

from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, a_controller, a_parent, config_map, stored
from syncing import Sync

from metaloop.common.api import CONFIRM_DELETION_ANNOTATION, MAX_DELETE_SHARE_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.deletion_guard import DEFAULT_LIMITS, DeletionLimits
from metaloop.reconciler.deletion_guards import DeletionGuards

HALF = replace(DEFAULT_LIMITS, share=0.5, min_children=4)


def annotated(obj: JsonObject, **annotations: str) -> JsonObject:
    keys = {"share": MAX_DELETE_SHARE_ANNOTATION, "confirmed": CONFIRM_DELETION_ANNOTATION}
    own: JsonObject = {keys[key]: value for key, value in annotations.items()}
    return {**obj, "metadata": {**unstructured.metadata(obj), "annotations": own}}


def a_family(
    *, keeps: int, of: int, limits: DeletionLimits = HALF, controller: JsonObject | None = None, parent: JsonObject | None = None
) -> Sync:
    """A parent with `of` children, of which its hook now desires the first `keeps`, and a new one."""
    wanted = [config_map(f"c{index}") for index in range(keeps)] + [config_map("new")]
    guards = DeletionGuards(limits=limits, clock=lambda: 0.0)
    sync = Sync(lambda _: {"status": {"told": True}, "children": [*wanted]}, controller=controller, parent=parent, guards=guards)
    for index in range(of):
        sync.api.put(CONFIG_MAPS, stored(config_map(f"c{index}"), owner=a_parent()))
    return sync


def names(sync: Sync) -> set[str]:
    return set(sync.children)


async def test_deletion_of_more_than_the_share_is_held_back_and_the_rest_is_done():
    sync = a_family(keeps=1, of=4)

    report = await sync.run()

    assert names(sync) == {"c0", "c1", "c2", "c3", "new"}
    assert unstructured.child_object(sync.parent, "status")["told"] is True
    assert (report.result, report.reason) == ("retry", "DeletionHeldBack")


async def test_event_says_what_would_be_deleted_and_how_to_confirm_it():
    sync = a_family(keeps=1, of=4)

    await sync.run()

    [(kind, reason, message)] = sync.recorder.told
    assert (kind, reason) == ("Warning", "DeletionHeldBack")
    assert "deletes 3 children (ConfigMap default/c1, ConfigMap default/c2, ConfigMap default/c3)" in message
    assert "metaloop.dev/confirm-deletion=3" in message


@pytest.mark.parametrize(
    "sync",
    [
        pytest.param(a_family(keeps=2, of=4), id="just the share"),
        pytest.param(a_family(keeps=0, of=3), id="fewer children than the guard is for"),
        pytest.param(a_family(keeps=0, of=9, limits=DEFAULT_LIMITS), id="no guard by default"),
        pytest.param(a_family(keeps=0, of=9, parent=annotated(a_parent(), confirmed="3")), id="confirmed for this generation"),
        pytest.param(a_family(keeps=0, of=9, controller=annotated(a_controller(), confirmed="true")), id="confirmed for all parents"),
        pytest.param(a_family(keeps=0, of=9, controller=annotated(a_controller(), share="1")), id="the controller allows all"),
    ],
)
async def test_deletion_is_carried_out(sync: Sync):
    report = await sync.run()

    assert report.result == "done"
    assert len(names(sync)) in {1, 3}


@pytest.mark.parametrize(
    "sync",
    [
        pytest.param(a_family(keeps=0, of=9, parent=annotated(a_parent(), confirmed="2")), id="confirmed for a former generation"),
        pytest.param(a_family(keeps=0, of=9, parent=annotated(a_parent(), confirmed="true")), id="confirmed for no generation"),
        pytest.param(a_family(keeps=0, of=9, controller=annotated(a_controller(), confirmed="yes")), id="another word"),
        pytest.param(
            a_family(keeps=8, of=9, limits=DEFAULT_LIMITS, controller=annotated(a_controller(), share="0")), id="the controller's own"
        ),
    ],
)
async def test_deletion_is_held_back(sync: Sync):
    report = await sync.run()

    assert report.reason == "DeletionHeldBack"
    assert len(names(sync)) == 10


@pytest.mark.parametrize("share", ["half", "", "-1", "1.5", "nan"])
async def test_share_that_makes_no_sense_deletes_nothing(share: str):
    sync = a_family(keeps=0, of=9, limits=DEFAULT_LIMITS, controller=annotated(a_controller(), share=share))

    report = await sync.run()

    assert report.reason == "InvalidSpec"
    assert "max-delete-share" in report.message
    assert names(sync) == {f"c{index}" for index in range(9)}


async def test_what_is_recreated_counts_for_nothing():
    wanted = [config_map(f"c{index}", data={"key": "other"}) for index in range(9)]
    guards = DeletionGuards(limits=replace(DEFAULT_LIMITS, share=0.0, min_children=1))
    sync = Sync(lambda _: {"children": [*wanted]}, controller=a_controller(method="Recreate"), guards=guards)
    await sync.run()
    for child in list(sync.children.values()):
        sync.api.put(CONFIG_MAPS, {**child, "data": {"key": "drifted"}})

    report = await sync.run()

    assert (report.result, names(sync)) == ("done", set())


async def test_finalize_hook_deletes_as_it_likes():
    controller = a_controller()
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    hooks["finalize"] = hooks["sync"]
    parent = a_parent(deleting=True)
    unstructured.metadata(parent)["finalizers"] = ["metacontroller.io/compositecontroller-things"]
    sync = a_family(keeps=0, of=9, limits=replace(DEFAULT_LIMITS, share=0.0, min_children=1), controller=controller, parent=parent)

    await sync.run()

    assert names(sync) == {"new"}


async def test_parents_that_lose_everything_within_a_minute_are_counted():
    now = 0.0
    guards = DeletionGuards(limits=replace(DEFAULT_LIMITS, emptied_parents=2), clock=lambda: now)
    families = [Sync(lambda _: {}, guards=guards) for _ in range(4)]
    for family in families:
        family.api.put(CONFIG_MAPS, stored(config_map("c"), owner=a_parent()))

    reports = [await family.run() for family in families[:3]]
    now = 61.0
    reports.append(await families[3].run())

    assert [report.reason for report in reports] == ["", "", "DeletionHeldBack", ""]
    assert [names(family) for family in families] == [set(), set(), {"c"}, set()]
