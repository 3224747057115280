"""What a hook desires, in the form that API servers store."""

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.apply.configuration import INT64_LIMIT, as_stored, with_whole_numbers


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, 1),
        (1.5, 1.5),
        (-0.0, 0),
        (1e18, 10**18),
        (1e21, 1e21),
        ({"a": [1.0, {"b": 2.0}], "c": "1.0"}, {"a": [1, {"b": 2}], "c": "1.0"}),
        ([True, None], [True, None]),
    ],
)
def test_whole_numbers_are_integers(value: JsonValue, expected: JsonValue):
    assert repr(with_whole_numbers(value, below=INT64_LIMIT)) == repr(expected)


def test_value_without_whole_floats_is_the_very_value():
    value: JsonObject = {"a": [1, 1.5, {"b": "c"}]}

    assert with_whole_numbers(value, below=INT64_LIMIT) is value


def test_secrets_strings_are_data():
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"b": "plain"}}

    assert as_stored(secret) == {"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "cGxhaW4="}}


@pytest.mark.parametrize("strings", [{"a": "x", "b": 1}, ["a"]])
def test_strings_that_are_none_are_left_for_the_api_server_to_refuse(strings: JsonValue):
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "stringData": strings}

    assert as_stored(secret) is secret


def test_rules_of_an_aggregated_cluster_role_are_nobodys_wish():
    rule: JsonObject = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    role: JsonObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "aggregationRule": rule}

    assert as_stored({**role, "rules": []}) == role


def test_rules_of_any_other_cluster_role_are_a_wish():
    role: JsonObject = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []}

    assert as_stored(role) == role


def test_other_kinds_strings_are_their_own():
    other: JsonObject = {"apiVersion": "example.com/v1", "kind": "Secret", "stringData": {"b": "plain"}}

    assert as_stored(other) is other
