"""Revisions are written one after the other, up to the first that fails; and what becomes of a name that is taken."""

from collections.abc import Sequence

import pytest
from fake_api import FakeApi, refused
from fake_hooks import FakeLease
from rolling import observed_gadgets, revision, rolling_parent

from metaloop.common.api.revision import REVISIONS
from metaloop.common.errors import Conflict, LeaseLost
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, reference_to
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.report import Write
from metaloop.reconciler.core.model import CreateChild, DeleteChild, RevisionAction, UpdateChild
from metaloop.reconciler.errors import WritesFailed
from metaloop.reconciler.revision_writer import write_revisions

OBSERVED = observed_gadgets()


def creation(text: str = "v1") -> CreateChild:
    """A revision that is yet to be made."""
    return CreateChild(info=REVISIONS, obj=revision(text), reason="a new revision")


def stored(api: FakeApi, text: str, *, is_orphan: bool = False, of: JsonObject | None = None) -> JsonObject:
    """A revision that is there."""
    made = revision(text, is_orphan=is_orphan)
    if of is not None:
        unstructured.metadata(made)["ownerReferences"] = [reference_to(of)]
    return api.put(REVISIONS, made)


async def write(api: FakeApi, actions: Sequence[RevisionAction], *, lease: FakeLease | None = None) -> list[Write]:
    """What was written."""
    permitted = api.permitted_by((lease or FakeLease()).check)
    return [each async for each in write_revisions(actions, observed=OBSERVED, api=permitted)]


def names(api: FakeApi) -> list[str]:
    return sorted(unstructured.name(obj) for obj in api.all_of(REVISIONS))


async def test_revisions_are_created_updated_and_deleted_in_their_order():
    api = FakeApi()
    older, spent = stored(api, "v1"), stored(api, "v0")
    actions: list[RevisionAction] = [
        creation("v2"),
        UpdateChild(info=REVISIONS, obj={**older, "children": []}, reason="a move"),
        DeleteChild(info=REVISIONS, obj=spent, reason="spent"),
    ]

    writes = await write(api, actions)

    assert [(each.name, each.is_deletion) for each in writes] == [
        ("things.example.com-v2", False),
        ("things.example.com-v1", False),
        ("things.example.com-v0", True),
    ]
    assert names(api) == ["things.example.com-v1", "things.example.com-v2"]


async def test_first_failure_ends_the_writes_and_says_of_which():
    api = FakeApi()
    api.failing["create", "things.example.com-v1"] = Forbidden(refused(403, "Forbidden"))

    with pytest.raises(WritesFailed, match=r"create ControllerRevision default/things\.example\.com-v1") as raised:
        await write(api, [creation("v0"), creation("v1"), creation("v2")])

    assert raised.value.fault is Fault.FORBIDDEN
    assert names(api) == ["things.example.com-v0"]


async def test_no_write_follows_a_lost_lease():
    api = FakeApi()

    with pytest.raises(LeaseLost):
        await write(api, [creation("v1"), creation("v2")], lease=FakeLease(requests_left=1))

    assert names(api) == ["things.example.com-v1"]


async def test_orphan_of_the_name_is_taken_over():
    api = FakeApi()
    orphan = stored(api, "v1", is_orphan=True)

    [written] = await write(api, [creation("v1")])

    [taken] = api.all_of(REVISIONS)
    owner = controller_ref(taken)
    assert owner is not None
    assert owner.uid == unstructured.uid(rolling_parent())
    assert (written.uid, unstructured.uid(taken)) == (unstructured.uid(orphan), unstructured.uid(orphan))


async def test_own_revision_that_is_not_yet_in_the_cache_is_waited_for():
    api = FakeApi()
    stored(api, "v1")

    with pytest.raises(WritesFailed) as raised:
        await write(api, [creation("v1")])

    assert raised.value.fault is Fault.CONFLICT


async def test_revision_of_another_parent_is_not_touched():
    api = FakeApi()
    theirs = stored(api, "v1", of={**rolling_parent(), "metadata": {"name": "other", "uid": "uid-of-other"}})

    with pytest.raises(WritesFailed) as raised:
        await write(api, [creation("v1")])

    assert raised.value.fault is Fault.NAME_TAKEN
    assert api.all_of(REVISIONS) == [theirs]


async def test_orphan_that_is_being_deleted_is_waited_for():
    api = FakeApi()
    orphan = stored(api, "v1", is_orphan=True)
    unstructured.metadata(orphan)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    api.put(REVISIONS, orphan)

    with pytest.raises(WritesFailed) as raised:
        await write(api, [creation("v1")])

    assert raised.value.fault is Fault.CONFLICT


async def test_name_that_is_free_again_is_tried_again_by_the_next_sync():
    class FreedApi(FakeApi):
        """Somebody deletes the object that has the name, just before we look at it."""

        async def get(self, info: ResourceInfo, namespace: str, name: str) -> JsonObject:
            """The stored object."""
            self.objects.clear()
            return await super().get(info, namespace, name)

    api = FreedApi()
    stored(api, "v1", is_orphan=True)

    with pytest.raises(WritesFailed, match="is free again") as raised:
        await write(api, [creation("v1")])

    assert raised.value.fault is Fault.CONFLICT


async def test_revision_that_was_deleted_meanwhile_is_no_failure():
    gone = revision("v0")

    assert await write(FakeApi(), [DeleteChild(info=REVISIONS, obj=gone, reason="spent")]) == []


async def test_update_of_a_revision_that_was_changed_meanwhile_fails():
    api = FakeApi()
    outdated = stored(api, "v1")
    api.put(REVISIONS, {**outdated, "children": []})

    with pytest.raises(WritesFailed) as raised:
        await write(api, [UpdateChild(info=REVISIONS, obj=outdated, reason="a move")])

    assert isinstance(raised.value.failures[0].error, Conflict)
