"""What is sent to have a child applied by the API server, and what each of its refusals means."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from builders import CONFIG_MAPS, a_parent, config_map, stored
from fake_api import FakeApi
from fake_hooks import FakeRecorder

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.errors import ApiStatus, Conflict, MetaloopError
from metaloop.common.json import JsonObject, JsonValue, loads
from metaloop.common.kube.client import APPLY_PATCH, JSON_PATCH
from metaloop.common.kube.errors import AlreadyExists, Invalid, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.model import ApplyChild, RecreateChild
from metaloop.reconciler.server_side_writer import ServerSideWriter

PARENT = a_parent()
DESIRED = config_map("a", namespace="default")
OBSERVED = stored(DESIRED, owner=PARENT)
FOREIGN_FIELDS = Conflict('Apply failed with 1 conflict: conflict with "kubectl": .data.key (PATCH /api/v1/x)')


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One patch, as it was sent."""

    body: JsonObject
    content_type: str
    params: Mapping[str, str]

    @property
    def metadata(self) -> JsonObject:
        return unstructured.metadata(self.body)


@dataclass
class PatchedApi(FakeApi):
    """Answers each patch in turn: with what was sent, or with a refusal."""

    refusals: list[MetaloopError | None] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)

    async def patch(  # noqa: PLR0917 - as the API is
        self, info: ResourceInfo, namespace: str, name: str, body: bytes, content_type: str, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """The object as it was sent."""
        del info, namespace, name
        self.sent.append(Sent(body=loads(body), content_type=content_type, params=params or {}))
        if self.refusals and (refusal := self.refusals.pop(0)):
            raise refusal
        return {**OBSERVED, **(self.sent[-1].body if content_type == APPLY_PATCH else {})}


def writer(recorder: FakeRecorder | None = None) -> ServerSideWriter:
    return ServerSideWriter(recorder=recorder or FakeRecorder(), field_manager="metaloop")


def applying(observed: JsonObject | None = None) -> ApplyChild:
    """What applies the desired ConfigMap."""
    return ApplyChild(info=CONFIG_MAPS, obj=DESIRED, reason="", observed=observed)


def annotated(obj: JsonObject) -> JsonObject:
    """As dynamic apply left it."""
    return {**obj, "metadata": {**unstructured.metadata(obj), "annotations": {LAST_APPLIED_ANNOTATION: "{}"}}}


# -- creation ----------------------------------------------------------------------------------------------------------


async def test_creation_states_a_version_that_no_object_has():
    api = PatchedApi()

    await writer().create(applying(), api=api)

    [sent] = api.sent
    assert (sent.content_type, sent.params) == (APPLY_PATCH, {"fieldManager": "metaloop", "force": "true"})
    assert sent.metadata["resourceVersion"] == str(2**63 - 1)
    assert sent.body["data"] == DESIRED["data"]


async def test_creation_of_what_is_there_is_refused_as_such():
    api = PatchedApi(refusals=[Conflict("the object has been modified")])

    with pytest.raises(AlreadyExists, match="the object has been modified"):
        await writer().create(applying(), api=api)


# -- updates -----------------------------------------------------------------------------------------------------------


async def test_update_states_the_uid_that_was_observed_and_forces_nothing():
    api = PatchedApi()

    await writer().update(applying(OBSERVED), PARENT, api=api)

    [sent] = api.sent
    assert (sent.metadata["uid"], sent.params["force"]) == ("uid-of-a", "false")
    assert "resourceVersion" not in sent.metadata


async def test_fields_of_other_managers_are_taken_over_and_that_is_told():
    api, recorder = PatchedApi(refusals=[FOREIGN_FIELDS]), FakeRecorder()

    await writer(recorder).update(applying(OBSERVED), PARENT, api=api)

    assert [sent.params["force"] for sent in api.sent] == ["false", "true"]
    message = 'ConfigMap default/a: took fields over from other managers (1 conflict: conflict with "kubectl": .data.key)'
    assert recorder.told == [("Warning", "ApplyConflict", message)]


async def test_nothing_is_told_where_nothing_was_taken():
    recorder = FakeRecorder()

    await writer(recorder).update(applying(OBSERVED), PARENT, api=PatchedApi())

    assert recorder.told == []


REFUSALS: dict[str, tuple[MetaloopError, type[MetaloopError], str]] = {
    # what it shows: (what the API server says, what is raised, with which words)
    "another version": (Conflict("the object has been modified"), Conflict, "modified"),
    "another object of the name": (
        Invalid(ApiStatus(code=422, reason="Invalid", message='metadata.uid: Invalid value: "x": field is immutable')),
        Conflict,
        "replaced by another object meanwhile",
    ),
    "a value that is not allowed": (
        Invalid(ApiStatus(code=422, reason="Invalid", message="spec.clusterIP: field is immutable")),
        Invalid,
        "clusterIP",
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS.keys())
async def test_other_refusals_are_raised_and_nothing_is_forced(refusal: tuple[MetaloopError, type[MetaloopError], str]):
    said, raised, words = refusal
    api, recorder = PatchedApi(refusals=[said]), FakeRecorder()

    with pytest.raises(raised, match=words):
        await writer(recorder).update(applying(OBSERVED), PARENT, api=api)

    assert (len(api.sent), recorder.told) == (1, [])


# -- from dynamic to server-side apply ---------------------------------------------------------------------------------


async def test_child_of_dynamic_apply_is_migrated_once_before_it_is_applied():
    api = PatchedApi()
    api.put(CONFIG_MAPS, annotated(OBSERVED))

    await writer().update(applying(annotated(OBSERVED)), PARENT, api=api)

    assert [sent.content_type for sent in api.sent] == [JSON_PATCH, APPLY_PATCH]


async def test_child_that_was_never_applied_dynamically_is_not_read():
    api = PatchedApi()

    await writer().update(applying(OBSERVED), PARENT, api=api)

    assert dict(api.requests) == {}


async def test_child_that_was_replaced_before_its_migration_is_left_alone():
    api = PatchedApi()
    api.put(CONFIG_MAPS, {**annotated(OBSERVED), "metadata": {**unstructured.metadata(OBSERVED), "uid": "uid-of-another"}})

    with pytest.raises(Conflict, match="replaced by another object meanwhile"):
        await writer().update(applying(annotated(OBSERVED)), PARENT, api=api)

    assert api.sent == []


async def test_child_that_was_deleted_before_its_migration_is_looked_for_again():
    with pytest.raises(Conflict, match="deleted meanwhile"):
        await writer().update(applying(annotated(OBSERVED)), PARENT, api=PatchedApi())


async def test_child_that_is_deleted_during_its_migration_is_looked_for_again():
    api = PatchedApi(refusals=[NotFound(ApiStatus(code=404, reason="NotFound", message=""))])
    api.put(CONFIG_MAPS, annotated(OBSERVED))

    with pytest.raises(Conflict, match="deleted meanwhile"):
        await writer().update(applying(annotated(OBSERVED)), PARENT, api=api)


# -- from the fields of others -----------------------------------------------------------------------------------------


def edited_by(*managers: str) -> JsonObject:
    """The object with a field of each of these managers."""
    entries: list[JsonValue] = [
        {"manager": each, "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {f"f:{each}": {}}}} for each in managers
    ]
    return {**OBSERVED, "metadata": {**unstructured.metadata(OBSERVED), "managedFields": entries}}


@pytest.mark.parametrize(
    ("folded", "managers", "is_migrated"),
    [
        ((), ("metaloop",), True),
        ((), ("kubectl-edit",), False),
        (("kubectl",), ("kubectl-edit",), True),
        (("kubectl",), ("helm",), False),
        (("kubectl",), (), False),
    ],
)
async def test_fields_that_become_ours_are_folded_before_the_apply(
    folded: tuple[str, ...], managers: tuple[str, ...], *, is_migrated: bool
):
    api = PatchedApi()
    api.put(CONFIG_MAPS, edited_by(*managers))

    await writer().update(replace(applying(OBSERVED), folded_managers=folded), PARENT, api=api)

    assert [sent.content_type for sent in api.sent] == [*([JSON_PATCH] if is_migrated else []), APPLY_PATCH]


# -- dry runs ----------------------------------------------------------------------------------------------------------


async def test_dry_run_forces_what_it_would_change_and_changes_nothing():
    api = PatchedApi()
    recreation = RecreateChild(info=CONFIG_MAPS, obj=DESIRED, desired=DESIRED, reason="", observed=OBSERVED, is_applied=True)

    await writer().dry_run(recreation, api=api)

    [sent] = api.sent
    assert sent.params == {"fieldManager": "metaloop", "force": "true", "dryRun": "All"}
    assert sent.metadata["uid"] == "uid-of-a"
