"""A dry run on the API server decides whether a child is recreated."""

import pytest
from builders import CONFIG_MAPS, config_map, stored
from fake_api import FakeApi, refused
from fake_hooks import FakeRecorder

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.errors import ApiStatus, Conflict, MetaloopError, Refused
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden, Invalid, NotFound
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import DeleteChild, RecreateChild
from metaloop.reconciler.recreate import Recreation
from metaloop.reconciler.server_side_writer import ServerSideWriter

OBSERVED = stored(config_map("a", data={"key": "there"}))


@pytest.fixture
def api() -> FakeApi:
    """An API server with the child."""
    api = FakeApi()
    api.put(CONFIG_MAPS, OBSERVED)
    return api


def recreation() -> Recreation:
    """The recreation under test."""
    return Recreation(server_side=ServerSideWriter(recorder=FakeRecorder(), field_manager="metacontroller"))


def recreate(api: FakeApi, **changes: JsonObject) -> RecreateChild:
    """The recreation of the child for these changes."""
    observed = api.all_of(CONFIG_MAPS)[0]
    return RecreateChild(
        info=CONFIG_MAPS,
        obj={**observed, **changes},
        desired=config_map("a", namespace="default"),
        reason="",
        observed=observed,
        is_applied=False,
    )


def problem(kind: type[Refused], message: str) -> Refused:
    """A refusal of the API server."""
    return kind(ApiStatus(code=422, reason=kind.__name__, message=message))


async def test_update_that_would_change_something_needs_a_new_child(api: FakeApi):
    assert await recreation().is_needed(recreate(api, data={"key": "new"}), api=api)


async def test_update_that_would_change_nothing_needs_none(api: FakeApi):
    assert not await recreation().is_needed(recreate(api), api=api)


async def test_what_we_remember_of_a_child_does_not_make_it_another(api: FakeApi):
    metadata = unstructured.metadata(api.all_of(CONFIG_MAPS)[0])
    annotated: JsonObject = {**metadata, "annotations": {LAST_APPLIED_ANNOTATION: "{}"}}

    assert not await recreation().is_needed(recreate(api, metadata=annotated), api=api)


@pytest.mark.parametrize(
    ("failure", "is_needed"),
    [
        (problem(Invalid, "spec: field is immutable"), True),
        (problem(Refused, "admission webhook does not support dry run"), True),
        (problem(Forbidden, "exceeded quota: pods"), True),
    ],
)
async def test_update_that_is_impossible_needs_a_new_child(api: FakeApi, failure: MetaloopError, *, is_needed: bool):
    api.failing["replace", "a"] = failure

    assert await recreation().is_needed(recreate(api, data={"key": "new"}), api=api) is is_needed


@pytest.mark.parametrize(
    ("failure", "expected"), [(NotFound(refused(404, "NotFound")), Conflict), (problem(Forbidden, "you may not"), Forbidden)]
)
async def test_anything_else_decides_nothing(api: FakeApi, failure: MetaloopError, expected: type[MetaloopError]):
    api.failing["replace", "a"] = failure

    with pytest.raises(expected):
        await recreation().is_needed(recreate(api, data={"key": "new"}), api=api)


@pytest.mark.parametrize(
    ("failure", "is_deleted"),
    [
        (None, True),
        (problem(Invalid, "spec.restartPolicy: Unsupported value"), False),
        (problem(Forbidden, "admission webhook denied the request"), False),
        (problem(Forbidden, "exceeded quota: pods"), True),
        (problem(Invalid, "spec.clusterIPs: provided IP is already allocated"), True),
    ],
)
async def test_child_goes_only_if_its_successor_could_come(api: FakeApi, failure: Refused | None, *, is_deleted: bool):
    if failure is not None:
        api.failing["create", "a"] = failure
    observed = api.all_of(CONFIG_MAPS)[0]
    deletion = DeleteChild(info=CONFIG_MAPS, obj=observed, reason="", successor=config_map("a", namespace="default"))

    if is_deleted:
        await recreation().delete(deletion, api=api)
    else:
        with pytest.raises(Refused):
            await recreation().delete(deletion, api=api)

    assert (api.all_of(CONFIG_MAPS) == []) is is_deleted


async def test_child_that_is_only_unwanted_goes_without_a_question(api: FakeApi):
    observed = api.all_of(CONFIG_MAPS)[0]

    await recreation().delete(DeleteChild(info=CONFIG_MAPS, obj=observed, reason=""), api=api)

    assert dict(api.requests) == {"delete": 1}


async def test_child_of_another_version_stays(api: FakeApi):
    observed = api.all_of(CONFIG_MAPS)[0]

    with pytest.raises(Conflict):
        await recreation().delete(DeleteChild(info=CONFIG_MAPS, obj=observed, reason=""), api=api, resource_version="1")

    assert api.all_of(CONFIG_MAPS) == [observed]
