"""Replacements and deletions: what holds when the object changed, was replaced or is gone meanwhile."""

from collections.abc import Callable

import pytest
from builders import CONFIG_MAPS, config_map, stored
from fake_api import FakeApi

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.writes import deleted, replaced


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
