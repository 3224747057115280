"""Writes to the parent: with the observed version, and again after a conflict."""

from collections.abc import Mapping
from typing import Any

import pytest
from builders import THINGS, a_parent, group, observed
from fake_api import FakeApi
from fake_hooks import FakeLease

from metaloop.common.errors import Conflict, LeaseLost
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.report import Write
from metaloop.reconciler.core.model import Observed, ParentEdit
from metaloop.reconciler.core.parent.edits import next_status, with_status
from metaloop.reconciler.parent_writer import ParentWriter

READY: JsonObject = {"phase": "Ready"}
STORED: JsonObject = {"phase": "Ready", "observedGeneration": 3}


def stored_parent(api: FakeApi, **parts: Any) -> Observed:
    """A stored parent."""
    return observed(group(), parent=api.put(THINGS, a_parent(**parts)))


async def write(api: FakeApi, seen: Observed, *, lease: FakeLease | None = None) -> Write | None:
    """Writes the hook's status to a parent."""
    status = next_status(seen.parent, READY)
    edit = ParentEdit(name="Status", mutate=lambda parent: with_status(parent, status), subresource="status")
    edited = await ParentWriter().edit(seen, edit, api=api.permitted_by((lease or FakeLease()).check))
    return edited.write


async def test_status_is_written_without_a_read():
    api = FakeApi()

    written = await write(api, stored_parent(api))

    assert dict(api.requests) == {"replace status": 1}
    [parent] = api.all_of(THINGS)
    assert parent["status"] == STORED
    assert written is not None
    assert (written.resource, written.name, written.resource_version) == (THINGS.id, "parent", str(api.version))


async def test_status_that_is_stored_is_not_written():
    api = FakeApi()

    assert await write(api, stored_parent(api, status=STORED)) is None
    assert dict(api.requests) == {}


async def test_parent_that_changed_meanwhile_gets_the_status_after_one_read():
    api = FakeApi()
    seen = stored_parent(api)
    api.put(THINGS, a_parent(spec={"changed": True}))

    await write(api, seen)

    assert dict(api.requests) == {"replace status": 2, "get": 1}
    [parent] = api.all_of(THINGS)
    assert (parent["spec"], parent["status"]) == ({"changed": True}, STORED)


async def test_status_that_somebody_else_wrote_meanwhile_is_not_written_again():
    api = FakeApi()
    seen = stored_parent(api)
    api.put(THINGS, a_parent(status=STORED))

    assert await write(api, seen) is None
    assert dict(api.requests) == {"replace status": 1, "get": 1}


async def test_parent_that_is_gone_needs_no_status():
    api = FakeApi()
    seen = stored_parent(api)
    api.objects.clear()

    assert await write(api, seen) is None


async def test_namesake_of_the_parent_gets_no_status():
    api = FakeApi()
    seen = stored_parent(api)
    api.put(THINGS, a_parent(uid="uid-of-a-namesake"))

    assert await write(api, seen) is None
    [parent] = api.all_of(THINGS)
    assert "status" not in parent


async def test_endless_conflicts_end_in_one():
    api = FakeApi()
    seen = stored_parent(api)
    api.failing["replace status", "parent"] = Conflict("always")

    with pytest.raises(Conflict):
        await write(api, seen)

    assert api.requests["replace status"] == 5


async def test_lost_lease_writes_nothing():
    api = FakeApi()

    with pytest.raises(LeaseLost):
        await write(api, stored_parent(api), lease=FakeLease(requests_left=0))

    assert dict(api.requests) == {}


async def test_last_finalizer_of_a_parent_that_is_being_deleted_takes_it_with_it():
    api = FakeApi()
    going = a_parent(deleting=True)
    going["metadata"]["finalizers"] = ["mine"]  # type: ignore[index, call-overload]
    seen = observed(group(), parent=api.put(THINGS, going))

    def let_go(parent: JsonObject) -> JsonObject:
        return {**parent, "metadata": {**unstructured.metadata(parent), "finalizers": []}}

    edited = await ParentWriter().edit(seen, ParentEdit(name="Finalizer", mutate=let_go), api=api)

    assert edited.parent is None
    assert edited.write is not None
    assert edited.write.is_deletion
    assert api.all_of(THINGS) == []


async def test_write_that_changed_nothing_is_not_repeated_until_the_parent_changes():
    """The API server drops unknown fields of the status, so it always differs from the desired one."""
    api = DroppingApi()
    writer, seen = ParentWriter(), stored_parent(api, status=STORED)

    edit = ParentEdit(name="Status", mutate=lambda parent: with_status(parent, {**STORED, "unknown": 1}), subresource="status")
    for _ in range(3):
        await writer.edit(seen, edit, api=api)
    assert dict(api.requests) == {"replace status": 1}

    changed = observed(group(), parent=api.put(THINGS, {**seen.parent, "more": 1}))
    await writer.edit(changed, edit, api=api)

    assert dict(api.requests) == {"replace status": 2}


class DroppingApi(FakeApi):
    """Drops the status field `unknown`, as a schema without that field does."""

    async def replace(
        self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        status = {key: value for key, value in unstructured.child_object(obj, "status").items() if key != "unknown"}
        return await super().replace(info, {**obj, "status": status}, subresource, params=params)
