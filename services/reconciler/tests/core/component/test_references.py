"""The contents of references: which data they are, what may be missing, and what their digests depend on."""

from dataclasses import replace

import pytest

from metaloop.common.api.references import Reference
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId
from metaloop.common.related_query import InNamespace
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.references import addresses_of, contents_of, queries_of
from metaloop.reconciler.errors import ReferenceMissing

SECRET = Reference(path=".spec.secret", kind="Secret", namespace="n", name="s")
SETTINGS = Reference(path=".spec.settings", kind="ConfigMap", namespace="n", name="c")


def objects(*, secret: JsonObject | None = None, settings: JsonObject | None = None) -> dict[ObjectKey, JsonObject]:
    """The objects that exist."""
    found = {ObjectKey("", "Secret", "n", "s"): secret, ObjectKey("", "ConfigMap", "n", "c"): settings}
    return {key: obj for key, obj in found.items() if obj is not None}


def contents(reference: Reference, *, is_deleting: bool = False, **found: JsonObject | None) -> list[JsonObject]:
    """The data of the contents of one reference."""
    return [each.data for each in contents_of([reference], objects(**found), is_deleting=is_deleting)]


@pytest.mark.parametrize(
    ("key", "obj", "data"),
    [
        ("", {"data": {"a": "1", "b": "2"}}, {"data": {"a": "1", "b": "2"}}),
        ("", {}, {}),
        ("", {"data": {"a": "1"}, "binaryData": {"b": "Mg=="}}, {"data": {"a": "1"}, "binaryData": {"b": "Mg=="}}),
        ("a", {"data": {"a": "1", "b": "2"}}, {"data": {"a": "1"}}),
        ("b", {"data": {"a": "1"}, "binaryData": {"b": "Mg=="}}, {"binaryData": {"b": "Mg=="}}),
    ],
)
def test_contents_are_all_data_or_those_of_the_key(key: str, obj: JsonObject, data: JsonObject):
    assert contents(replace(SETTINGS, key=key), settings=obj) == [data]


def test_missing_object_is_named_with_the_path():
    with pytest.raises(ReferenceMissing, match=r"^Secret n/s does not exist: the component refers to it at .spec.secret$"):
        contents(SECRET)


def test_missing_key_is_named():
    with pytest.raises(ReferenceMissing, match=r"^Secret n/s has no key 'k'"):
        contents(replace(SECRET, key="k"), secret={"data": {"a": "1"}})


@pytest.mark.parametrize(
    ("changes", "is_deleting", "is_allowed"),
    [
        ({}, False, False),
        ({}, True, False),
        ({"not_found": "IgnoreOnDeletion"}, False, False),
        ({"not_found": "IgnoreOnDeletion"}, True, True),
        ({"is_optional": True}, False, True),
        ({"is_optional": True, "key": "k"}, False, True),
    ],
)
def test_what_may_be_missing(changes: dict[str, object], *, is_deleting: bool, is_allowed: bool):
    reference = replace(SECRET, **changes)  # type: ignore[arg-type]
    if is_allowed:
        assert contents(reference, is_deleting=is_deleting) == []
        return
    with pytest.raises(ReferenceMissing):
        contents(reference, is_deleting=is_deleting)


def test_digest_depends_on_the_data_that_are_meant_and_on_nothing_else():
    def digest(obj: JsonObject) -> str:
        [found] = contents_of([replace(SETTINGS, key="a")], objects(settings=obj), is_deleting=False)
        return found.digest

    before = digest({"data": {"a": "1", "b": "2"}})

    assert digest({"data": {"a": "1", "b": "3"}, "metadata": {"labels": {"x": "y"}}}) == before
    assert digest({"data": {"a": "2", "b": "2"}}) != before


def test_hooks_are_shown_where_the_data_come_from():
    [found] = contents_of([replace(SECRET, key="a")], objects(secret={"data": {"a": "MQ=="}}), is_deleting=False)

    assert found.shown() == {
        "path": ".spec.secret",
        "kind": "Secret",
        "namespace": "n",
        "name": "s",
        "key": "a",
        "data": {"a": "MQ=="},
    }


def test_objects_are_queried_and_read_once_each():
    references = [SECRET, SETTINGS, replace(SECRET, path=".spec.other", name="t"), replace(SECRET, path=".spec.again")]

    assert [(query.resource, query.where, sorted(query.names)) for query in queries_of(references)] == [
        (ResourceId("v1", "configmaps"), InNamespace("n"), ["c"]),
        (ResourceId("v1", "secrets"), InNamespace("n"), ["s", "t"]),
    ]
    assert [address.name for address in addresses_of(references).values()] == ["s", "c", "t"]
