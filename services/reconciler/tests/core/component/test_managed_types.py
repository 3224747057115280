"""Which types are managed."""

import pytest
from components import api_service, crd, manifest

from metaloop.reconciler.core.component.managed_types import ManagedType, is_managed, managed_type, managed_types_of


def test_definition_makes_its_kind_known_in_all_versions():
    assert managed_types_of(crd("g.io", "Foo")) == (ManagedType("g.io", "*", "Foo"),)


def test_api_service_makes_all_kinds_of_its_version_known():
    assert managed_types_of(api_service("g.io", "v2")) == (ManagedType("g.io", "v2", "*"),)


def test_other_objects_make_nothing_known():
    assert managed_types_of(manifest()) == ()
    assert managed_types_of(manifest("CustomResourceDefinition", api_version="example.com/v1")) == ()


@pytest.mark.parametrize(
    ("pattern", "group", "is_covered"),
    [
        ("*", "any.io", True),
        ("*", "", True),
        ("a.io", "a.io", True),
        ("a.io", "b.io", False),
        ("a.io", "x.a.io", False),
        ("*.a.io", "x.a.io", True),
        ("*.a.io", "x.y.a.io", True),
        ("*.a.io", "a.io", False),
        ("*.a.io", "xa.io", False),
        ("*.io", "a.io", True),
        ("*.foo", "a.foo", True),
        ("*.foo.bar", "a.foo.bar", True),
        ("f*o", "foo", False),
        ("f*o", "fo", False),
        ("foo.*", "foo.bar", False),
        ("*.*.foo", "a.b.foo", False),
        ("*foo", "afoo", False),
        ("", "", True),
        ("", "apps", False),
    ],
)
def test_groups_match_by_name_or_suffix(pattern: str, group: str, is_covered: bool):
    assert ManagedType(pattern, "*", "*").covers(group, "v1", "Foo") is is_covered


@pytest.mark.parametrize(
    ("pattern", "is_covered"),
    [
        (ManagedType("g", "v1", "Foo"), True),
        (ManagedType("g", "*", "Foo"), True),
        (ManagedType("g", "v1", "*"), True),
        (ManagedType("g", "v2", "Foo"), False),
        (ManagedType("g", "v1", "Bar"), False),
        (ManagedType("g", "v1", "F*"), False),
    ],
)
def test_versions_and_kinds_match_exactly_or_all(pattern: ManagedType, is_covered: bool):
    assert pattern.covers("g", "v1", "Foo") is is_covered


def test_type_is_managed_if_any_pattern_covers_it():
    types = (ManagedType("a", "*", "X"), ManagedType("b", "*", "Y"))

    assert is_managed(types, group="b", version="v1", kind="Y")
    assert not is_managed(types, group="a", version="v1", kind="Y")


@pytest.mark.parametrize("each", [ManagedType("", "v1", "Pod"), ManagedType("*.io", "*", "*")])
def test_text_form_is_read_back(each: ManagedType):
    assert managed_type(str(each)) == each


@pytest.mark.parametrize("text", ["", "a/b", "a/b/c/d"])
def test_other_text_is_no_type(text: str):
    assert managed_type(text) is None
