"""References: which rules a controller may state, and what a component refers to by them."""

import re

import pytest

from metaloop.common.api.references import Reference, ReferenceRule, parse_references, references_of
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject, JsonValue

SECRET = ReferenceRule(path=".spec.secret", kind="Secret")
VALUES = ReferenceRule(path=".spec.valuesFrom[*]", kind="ConfigMap", not_found="IgnoreOnDeletion")


def component(spec: JsonValue, *, namespace: str = "own") -> JsonObject:
    """A component with this spec."""
    return {"metadata": {"name": "c", "namespace": namespace}, "spec": spec}


def test_rules_are_read():
    spec: JsonObject = {
        "references": [
            {"path": ".spec.secret", "kind": "Secret"},
            {"path": ".spec.valuesFrom[*]", "kind": "ConfigMap", "notFound": "IgnoreOnDeletion"},
        ]
    }

    assert parse_references(spec) == (SECRET, VALUES)


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"kind": "Secret"}, "spec.references[0].path: must be a non-empty string"),
        ({"path": "spec.a", "kind": "Secret"}, "spec.references[0].path: must be a path"),
        ({"path": ".spec.a[0]", "kind": "Secret"}, "spec.references[0].path: must be a path"),
        ({"path": ".spec.a"}, "spec.references[0].kind: must be a non-empty string"),
        ({"path": ".spec.a", "kind": "Pod"}, "spec.references[0].kind: must be one of Secret, ConfigMap"),
        ({"path": ".spec.a", "kind": "Secret", "notFound": "Ignore"}, "spec.references[0].notFound: must be one of"),
        ({"path": ".spec.a", "kind": "Secret", "name": "x"}, "spec.references[0].name: is unknown"),
    ],
)
def test_invalid_rule_is_named(rule: JsonObject, problem: str):
    with pytest.raises(InvalidSpec, match=f"^{re.escape(problem)}"):
        parse_references({"references": [rule]})


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, []),
        ({"secret": None, "valuesFrom": None}, []),
        ({"secret": "", "valuesFrom": []}, []),
        ({"valuesFrom": "x"}, []),
        ({"secret": "s"}, [(".spec.secret", "Secret own/s", "", False)]),
        ({"secret": {"name": "s", "key": "k", "more": 1}}, [(".spec.secret", "Secret own/s", "k", False)]),
        ({"secret": {"name": "s", "namespace": "own", "optional": True}}, [(".spec.secret", "Secret own/s", "", True)]),
        (
            {"valuesFrom": ["a", {"name": "b"}]},
            [(".spec.valuesFrom[0]", "ConfigMap own/a", "", False), (".spec.valuesFrom[1]", "ConfigMap own/b", "", False)],
        ),
    ],
)
def test_component_refers_to_what_stands_at_the_paths(spec: JsonValue, found: list[tuple[str, str, str, bool]]):
    references = references_of(component(spec), [SECRET, VALUES])

    assert [(each.path, str(each), each.key, each.is_optional) for each in references] == found


def test_path_may_lead_through_several_lists():
    rule = ReferenceRule(path=".spec.parts[*].env[*].secret", kind="Secret")
    spec: JsonValue = {"parts": [{"env": [{"secret": "a"}, {}]}, {}, {"env": [{"secret": "b"}]}]}

    assert [each.path for each in references_of(component(spec), [rule])] == [
        ".spec.parts[0].env[0].secret",
        ".spec.parts[2].env[0].secret",
    ]


def test_rule_of_a_reference_comes_with_it():
    [reference] = references_of(component({"valuesFrom": ["a"]}), [SECRET, VALUES])

    assert reference == Reference(path=".spec.valuesFrom[0]", kind="ConfigMap", namespace="own", name="a", not_found="IgnoreOnDeletion")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1, "spec.secret: must be the name of a Secret"),
        ({}, "spec.secret: must be the name of a Secret"),
        ({"name": ""}, "spec.secret: must be the name of a Secret"),
        ({"name": "s", "key": 1}, "spec.secret: must be the name of a Secret"),
        ({"name": "s", "namespace": "kube-system"}, "spec.secret.namespace: must be own"),
    ],
)
def test_what_is_no_reference_is_the_component_s_fault(value: JsonValue, problem: str):
    with pytest.raises(InvalidParent, match=f"^{re.escape(problem)}"):
        references_of(component({"secret": value}), [SECRET])


def test_component_without_namespace_says_where_its_references_are():
    [reference] = references_of(component({"secret": {"name": "s", "namespace": "there"}}, namespace=""), [SECRET])

    assert str(reference) == "Secret there/s"
    with pytest.raises(InvalidParent, match=r"^spec.secret.namespace: is missing"):
        references_of(component({"secret": "s"}, namespace=""), [SECRET])
