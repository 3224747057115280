"""Digests of objects and of components."""

import pytest
from components import PREFIX, manifest, targets

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.component.digest import ONCE, component_digest, object_digest

COMPONENT: JsonObject = {
    "metadata": {"name": "c", "generation": 1, "annotations": {"a": "b"}, "labels": {"l": "m"}},
    "spec": {"x": 1},
    "status": {"state": "Ready"},
}


def digest(obj: JsonObject) -> str:
    """The digest of an object by the default policy."""
    return object_digest(obj, policy="OnObjectChange", component="c")


def changed(obj: JsonObject, part: str, **fields: JsonValue) -> JsonObject:
    """The same with these fields changed in one part."""
    before = obj.get(part)
    return {**obj, part: {**(before if isinstance(before, dict) else {}), **fields}}


def test_order_of_keys_does_not_matter():
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})


def test_digest_is_64_hexadecimal_digits():
    assert len(digest(manifest())) == 64
    assert int(digest(manifest()), 16)


@pytest.mark.parametrize("field", ["resourceVersion", "generation", "managedFields"])
def test_fields_that_the_server_keeps_do_not_matter(field: str):
    assert digest(changed(manifest(), "metadata", **{field: "7"})) == digest(manifest())


@pytest.mark.parametrize(
    "other",
    [manifest(name="b"), manifest(delete_policy="orphan"), {**manifest(), "data": {"k": "v"}}, {**manifest(), "status": {"x": 1}}],
    ids=["name", "policy", "content", "status"],
)
def test_everything_else_matters(other: JsonObject):
    assert digest(other) != digest(manifest())


def test_object_that_is_applied_once_has_a_constant_digest():
    assert object_digest(manifest(), policy="Once", component="c") == ONCE == object_digest({}, policy="Once", component="d")


def test_object_that_depends_on_its_component_has_its_digest_in_its_own():
    assert object_digest(manifest(), policy="OnObjectOrComponentChange", component="c") == f"{digest(manifest())}@c"


def test_changed_policy_changes_the_digest():
    plain, once = manifest(), manifest(reconcile_policy="once")

    assert targets(plain)[0].digest != targets(once)[0].digest


def test_marks_that_a_manifest_carries_do_not_matter():
    marked = changed(manifest(), "metadata", labels={f"{PREFIX}/owner-id": "x"}, annotations={f"{PREFIX}/digest": "y"})

    assert targets(marked)[0].digest == targets(manifest())[0].digest


@pytest.mark.parametrize(
    "other",
    [changed(COMPONENT, "metadata", generation=2), changed(COMPONENT, "metadata", annotations={}), changed(COMPONENT, "spec", x=2)],
    ids=["generation", "annotations", "spec"],
)
def test_component_asks_for_something_else_with_another_digest(other: JsonObject):
    assert component_digest(other, references={}) != component_digest(COMPONENT, references={})


@pytest.mark.parametrize(
    "other",
    [changed(COMPONENT, "metadata", labels={}), changed(COMPONENT, "status", state="Error"), changed(COMPONENT, "metadata", uid="u")],
    ids=["labels", "status", "uid"],
)
def test_component_asks_for_the_same_with_the_same_digest(other: JsonObject):
    assert component_digest(other, references={}) == component_digest(COMPONENT, references={})


def test_referenced_contents_are_part_of_what_a_component_asks_for():
    digests = {component_digest(COMPONENT, references=each) for each in ({}, {".spec.a": "1"}, {".spec.a": "2"}, {".spec.b": "1"})}

    assert len(digests) == 4
