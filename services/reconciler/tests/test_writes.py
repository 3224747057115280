"""Replacements and deletions: what holds when the object changed, was replaced or is gone meanwhile."""

from collections.abc import Callable

import pytest
from builders import CONFIG_MAPS, config_map, stored
from fake_api import FakeApi

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.writes import deleted, deleted_as_observed, replaced


def existing(api: FakeApi) -> JsonObject:
    """A ConfigMap as it was observed."""
    return api.put(CONFIG_MAPS, stored(config_map("a")))


def changed_meanwhile(api: FakeApi, observed: JsonObject) -> None:
    """Somebody else writes to it."""
    api.put(CONFIG_MAPS, {**observed, "data": {"key": "theirs"}})


def replaced_meanwhile(api: FakeApi, observed: JsonObject) -> None:
    """Somebody else deletes it, and creates another one of its name."""
    api.put(CONFIG_MAPS, {**observed, "metadata": {**unstructured.metadata(observed), "uid": "uid-of-another"}})


async def test_replaced_object_is_returned_with_its_new_version():
    api = FakeApi()
    observed = existing(api)

    written = await replaced(api, CONFIG_MAPS, {**observed, "data": {"key": "ours"}})

    assert written["data"] == {"key": "ours"}
    assert unstructured.resource_version(written) != unstructured.resource_version(observed)


@pytest.mark.parametrize("meanwhile", [changed_meanwhile, replaced_meanwhile])
async def test_object_that_was_written_meanwhile_is_not_replaced(meanwhile: Callable[[FakeApi, JsonObject], None]):
    api = FakeApi()
    observed = existing(api)
    meanwhile(api, observed)
    before = api.all_of(CONFIG_MAPS)

    with pytest.raises(Conflict):
        await replaced(api, CONFIG_MAPS, {**observed, "data": {"key": "ours"}})

    assert api.all_of(CONFIG_MAPS) == before


async def test_object_that_is_gone_is_a_conflict_for_a_replacement():
    with pytest.raises(Conflict, match="deleted meanwhile"):
        await replaced(FakeApi(), CONFIG_MAPS, stored(config_map("a")))


async def test_deleted_object_is_returned_as_it_was_observed():
    api = FakeApi()
    observed = existing(api)

    assert await deleted(api, CONFIG_MAPS, observed) == observed
    assert api.all_of(CONFIG_MAPS) == []


async def test_object_that_is_gone_needs_no_deletion():
    assert await deleted(FakeApi(), CONFIG_MAPS, stored(config_map("a"))) is None


async def test_namesake_of_a_deleted_object_survives():
    api = FakeApi()
    observed = existing(api)
    replaced_meanwhile(api, observed)

    with pytest.raises(Conflict):
        await deleted(api, CONFIG_MAPS, observed)

    assert len(api.all_of(CONFIG_MAPS)) == 1


async def test_changed_object_is_deleted_unless_its_version_was_stated():
    api = FakeApi()
    observed = existing(api)
    changed_meanwhile(api, observed)

    with pytest.raises(Conflict):
        await deleted(api, CONFIG_MAPS, observed, resource_version=unstructured.resource_version(observed))
    await deleted(api, CONFIG_MAPS, observed)

    assert api.all_of(CONFIG_MAPS) == []


# -- deletions of what is no longer desired ----------------------------------------------------------------------------


async def test_object_is_deleted_in_the_version_that_was_observed():
    api = FakeApi()
    observed = existing(api)

    assert await deleted_as_observed(api, CONFIG_MAPS, observed) == observed
    assert dict(api.requests) == {"delete": 1}


async def test_object_whose_status_alone_changed_is_deleted():
    api = FakeApi()
    observed = existing(api)
    api.put(CONFIG_MAPS, {**observed, "status": {"phase": "Running"}})

    await deleted_as_observed(api, CONFIG_MAPS, observed)

    assert api.all_of(CONFIG_MAPS) == []
    assert dict(api.requests) == {"delete": 2, "get": 1}


async def test_object_that_changed_meanwhile_is_not_deleted():
    api = FakeApi()
    observed = existing(api)
    changed_meanwhile(api, observed)

    with pytest.raises(Conflict):
        await deleted_as_observed(api, CONFIG_MAPS, observed)

    assert len(api.all_of(CONFIG_MAPS)) == 1


async def test_namesake_of_an_object_that_is_no_longer_desired_survives():
    api = FakeApi()
    observed = existing(api)
    replaced_meanwhile(api, observed)

    assert await deleted_as_observed(api, CONFIG_MAPS, observed) is None
    assert len(api.all_of(CONFIG_MAPS)) == 1


async def test_object_that_is_going_already_is_left_alone():
    api = FakeApi()
    observed = existing(api)
    api.put(CONFIG_MAPS, {**observed, "metadata": {**unstructured.metadata(observed), "deletionTimestamp": "2026-01-01T00:00:00Z"}})

    assert await deleted_as_observed(api, CONFIG_MAPS, observed) is None


async def test_object_that_changes_faster_than_we_look_is_left_to_the_next_sync():
    api = FakeApi()
    observed = existing(api)
    api.failing["delete", "a"] = Conflict("always")

    with pytest.raises(Conflict):
        await deleted_as_observed(api, CONFIG_MAPS, observed)

    assert dict(api.requests) == {"delete": 5, "get": 5}
