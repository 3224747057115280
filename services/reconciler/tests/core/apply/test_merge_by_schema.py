"""Three-way merge by the schema of a kind."""

import pytest
from known_schemas import GADGET, WIDGET

from metaloop.common.json import JsonObject
from metaloop.reconciler.core.apply.merge import NEVER_APPLIED, merge
from metaloop.reconciler.core.apply.schema import Schema

SPEC = GADGET.of("spec")

CASES: dict[str, tuple[JsonObject, JsonObject, JsonObject, JsonObject]] = {
    # what it shows: (observed, last, desired, expected)
    "a list-map has the key that its schema says": (
        {"ports": [{"port": 53, "protocol": "UDP", "node": 1}, {"port": 53, "protocol": "TCP", "node": 2}]},
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]},
        {"ports": [{"port": 53, "name": "tcp"}, {"port": 53, "protocol": "UDP", "name": "udp"}]},
        {"ports": [{"port": 53, "protocol": "UDP", "node": 1, "name": "udp"}, {"port": 53, "protocol": "TCP", "node": 2, "name": "tcp"}]},
    ),
    "one protocol of a port can go": (
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
        {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]},
        {"ports": [{"port": 53}]},
        {"ports": [{"port": 53, "protocol": "TCP"}]},
    ),
    "a set keeps what others put into it": (
        {"names": ["theirs", "ours"]},
        {"names": ["ours"]},
        {"names": ["new"]},
        {"names": ["theirs", "new"]},
    ),
    "an atomic list is replaced, though its elements have names": (
        {"rules": [{"name": "theirs"}, {"name": "ours"}]},
        {"rules": [{"name": "ours"}]},
        {"rules": [{"name": "ours"}]},
        {"rules": [{"name": "ours"}]},
    ),
    "what somebody put into an element of an atomic list is taken out": (
        {"rules": [{"host": "x", "path": "/"}]},
        {"rules": [{"host": "x"}]},
        {"rules": [{"host": "x"}]},
        {"rules": [{"host": "x"}]},
    ),
    "an atomic object is replaced": (
        {"selector": {"matchLabels": {"theirs": "x"}}},
        {"selector": {}},
        {"selector": {}},
        {"selector": {}},
    ),
    "a list whose schema says nothing is what it looks like": (
        {"anyhow": [{"name": "theirs"}, {"name": "ours"}]},
        {"anyhow": [{"name": "ours"}]},
        {"anyhow": [{"name": "ours", "v": 1}]},
        {"anyhow": [{"name": "theirs"}, {"name": "ours", "v": 1}]},
    ),
    "another quantity is applied": ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1"}}, {"limits": {"cpu": "2"}}, {"limits": {"cpu": "2"}}),
    "a zero that somebody changed is repaired": (
        {"hostNetwork": True},
        {"hostNetwork": False},
        {"hostNetwork": False},
        {"hostNetwork": False},
    ),
    "a value in whose place a zero is desired now is given up": ({"nodePort": 30000}, {"nodePort": 30000}, {"nodePort": 0}, {}),
    "a zero that is kept is applied": ({}, {"replicas": 0}, {"replicas": 0}, {"replicas": 0}),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_merge_follows_the_schema(case: tuple[JsonObject, JsonObject, JsonObject, JsonObject]):
    observed, last, desired, expected = case

    assert merge(observed, last, desired, SPEC) == expected


@pytest.mark.parametrize(
    ("observed", "desired"),
    [
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, {"limits": {"cpu": "1000m", "memory": "1024Mi"}}),
        ({"limits": {"cpu": "500m"}}, {"limits": {"cpu": 0.5}}),
        ({"rules": [{"limit": "1"}]}, {"rules": [{"limit": "1000m"}]}),
        ({"rules": [{"host": "x", "apiGroup": "rbac.authorization.k8s.io"}]}, {"rules": [{"host": "x"}]}),
        ({"token": "dmFsdWU="}, {"token": "dmFs\ndWU=\n"}),
        ({}, {"limits": {}, "ports": [], "hostNetwork": False}),
        ({"nodePort": 30000, "targetPort": 80}, {"nodePort": 0, "targetPort": 0}),
        (
            {"rules": [{"host": "x", "scheme": "HTTP", "status": {"phase": "Pending"}}]},
            {"rules": [{"host": "x", "scheme": "", "status": {}}]},
        ),
        ({"names": ["b", "a"]}, {"names": ["a", "b"]}),
        ({"selector": {"matchLabels": {"a": "b"}}}, {"selector": {"matchLabels": {"a": "b"}}}),
    ],
)
def test_what_an_api_server_makes_of_a_wish_is_no_difference(observed: JsonObject, desired: JsonObject):
    assert merge(observed, desired, desired, SPEC) is observed


def test_zero_that_was_filled_is_nobodys_to_give_up():
    observed: JsonObject = {"targetPort": 80}

    assert merge(observed, {"targetPort": 0}, {}, SPEC) is observed


def test_adopted_list_that_has_all_that_is_desired_is_left_alone():
    observed: JsonObject = {"rules": [{"host": "x", "default": 1}]}

    assert merge(observed, NEVER_APPLIED, {"rules": [{"host": "x"}]}, SPEC) is observed


@pytest.mark.parametrize(
    ("observed", "desired"),
    [
        ({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}}),
        ({}, {"list": []}),
    ],
)
def test_custom_kinds_are_taken_literally(observed: JsonObject, desired: JsonObject):
    assert merge(observed, desired, desired, _spec_of(WIDGET)) == desired


def _spec_of(schema: Schema) -> Schema:
    return schema.of("spec")
