"""The behaviour of API servers that the reconciler relies on. The real one and the fake of other tests have it."""

import pytest
from builders import CONFIG_MAPS, THINGS
from fake_api import FakeApi

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import AlreadyExists, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.ports import Api


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.e2e)])
def api(request: pytest.FixtureRequest) -> Api:
    return FakeApi() if request.param == "fake" else request.getfixturevalue("kube")


@pytest.fixture
def space(api: Api, request: pytest.FixtureRequest) -> str:
    return "default" if isinstance(api, FakeApi) else request.getfixturevalue("namespace")


def new(space: str, info: ResourceInfo = CONFIG_MAPS, *, name: str = "a", **parts: JsonObject) -> JsonObject:
    """An object to create."""
    return {"apiVersion": info.api_version, "kind": info.kind, "metadata": {"name": name, "namespace": space}, **parts}


async def test_created_object_comes_back_with_uid_and_version(api: Api, space: str):
    created = await api.create(CONFIG_MAPS, new(space, data={"key": "value"}))

    assert unstructured.uid(created)
    assert int(unstructured.resource_version(created)) > 0
    assert created["data"] == {"key": "value"}
    assert unstructured.resource_version(await api.get(CONFIG_MAPS, space, "a")) == unstructured.resource_version(created)


async def test_a_name_is_given_once(api: Api, space: str):
    await api.create(CONFIG_MAPS, new(space))

    with pytest.raises(AlreadyExists):
        await api.create(CONFIG_MAPS, new(space))


async def test_what_is_not_there_is_not_found(api: Api, space: str):
    for verb in (
        lambda: api.get(CONFIG_MAPS, space, "a"),
        lambda: api.replace(CONFIG_MAPS, new(space)),
        lambda: api.delete(CONFIG_MAPS, space, "a", uid="x"),
    ):
        with pytest.raises(NotFound):
            await verb()


async def test_replacing_the_version_that_was_seen_gives_it_a_new_one(api: Api, space: str):
    created = await api.create(CONFIG_MAPS, new(space))

    replaced = await api.replace(CONFIG_MAPS, {**created, "data": {"key": "new"}})

    assert replaced["data"] == {"key": "new"}
    assert unstructured.uid(replaced) == unstructured.uid(created)
    assert unstructured.resource_version(replaced) != unstructured.resource_version(created)


async def test_replacing_an_older_version_is_a_conflict(api: Api, space: str):
    created = await api.create(CONFIG_MAPS, new(space))
    await api.replace(CONFIG_MAPS, {**created, "data": {"key": "new"}})

    with pytest.raises(Conflict):
        await api.replace(CONFIG_MAPS, {**created, "data": {"key": "other"}})


async def test_replacing_by_the_same_content_changes_no_version(api: Api, space: str):
    created = await api.create(CONFIG_MAPS, new(space, data={"key": "value"}))

    again = await api.replace(CONFIG_MAPS, created)

    assert unstructured.resource_version(again) == unstructured.resource_version(created)


async def test_deleting_another_uid_is_a_conflict_and_deletes_nothing(api: Api, space: str):
    created = await api.create(CONFIG_MAPS, new(space))

    with pytest.raises(Conflict):
        await api.delete(CONFIG_MAPS, space, "a", uid="somebody-else")

    assert unstructured.uid(await api.get(CONFIG_MAPS, space, "a")) == unstructured.uid(created)


async def test_deleted_object_is_gone(api: Api, space: str):
    created = await api.create(CONFIG_MAPS, new(space))

    await api.delete(CONFIG_MAPS, space, "a", uid=unstructured.uid(created))

    with pytest.raises(NotFound):
        await api.get(CONFIG_MAPS, space, "a")


async def test_finalizers_keep_a_deleted_object_for_now(api: Api, space: str):
    held = new(space)
    held["metadata"] = {**unstructured.metadata(held), "finalizers": ["example.com/hold"]}
    created = await api.create(CONFIG_MAPS, held)

    await api.delete(CONFIG_MAPS, space, "a", uid=unstructured.uid(created))

    assert unstructured.is_deleting(await api.get(CONFIG_MAPS, space, "a"))


async def test_status_is_written_by_its_subresource_alone(api: Api, space: str):
    created = await api.create(THINGS, new(space, THINGS, spec={"size": 1}))

    with_status = await api.replace(THINGS, {**created, "spec": {"size": 2}, "status": {"phase": "Ready"}}, subresource="status")
    with_spec = await api.replace(THINGS, {**with_status, "spec": {"size": 3}, "status": {"phase": "Lost"}})

    assert (with_status["spec"], with_status["status"]) == ({"size": 1}, {"phase": "Ready"})
    assert (with_spec["spec"], with_spec["status"]) == ({"size": 3}, {"phase": "Ready"})


async def test_status_of_an_older_version_is_a_conflict(api: Api, space: str):
    created = await api.create(THINGS, new(space, THINGS, spec={"size": 1}))
    await api.replace(THINGS, {**created, "spec": {"size": 2}})

    with pytest.raises(Conflict):
        await api.replace(THINGS, {**created, "status": {"phase": "Ready"}}, subresource="status")
