"""Three-way merge: cases that Metacontroller tests, cases that it gets wrong, and properties that hold for any JSON."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.apply.merge import merge
from metaloop.reconciler.core.apply.schema import NO_SCHEMA

CASES: dict[str, tuple[Any, Any, Any, Any]] = {
    # what it shows: (observed, last, desired, expected)
    "empty objects stay empty": ({}, {}, {}, {}),
    "a value nobody speaks of is kept": ({"theirs": 1}, {}, {}, {"theirs": 1}),
    "a value no longer desired is removed": ({"ours": 1, "theirs": 2}, {"ours": 1}, {}, {"theirs": 2}),
    "a desired value replaces": ({"ours": "old"}, {"ours": "old"}, {"ours": "new"}, {"ours": "new"}),
    "a desired value is added": ({}, {}, {"ours": "new"}, {"ours": "new"}),
    "a drifted value is repaired": ({"ours": "drift"}, {"ours": "x"}, {"ours": "x"}, {"ours": "x"}),
    "objects merge inside objects": (
        {"outer": {"ours": 1, "gone": 2, "theirs": 3}},
        {"outer": {"ours": 0, "gone": 2}},
        {"outer": {"ours": 9}},
        {"outer": {"ours": 9, "theirs": 3}},
    ),
    "a list of scalars is replaced": ({"list": [1, 2]}, {"list": [1]}, {"list": [3]}, {"list": [3]}),
    "a list of objects without a key is replaced": (
        {"list": [{"a": 1}, {"b": 2}]},
        {"list": [{"a": 1}]},
        {"list": [{"c": 3}]},
        {"list": [{"c": 3}]},
    ),
    "a list keyed by name merges by name, in observed order, new ones last": (
        {"list": [{"name": "theirs", "v": 0}, {"name": "ours", "v": 1, "default": True}, {"name": "gone", "v": 2}]},
        {"list": [{"name": "ours", "v": 1}, {"name": "gone", "v": 2}]},
        {"list": [{"name": "new", "v": 3}, {"name": "ours", "v": 4}]},
        {"list": [{"name": "theirs", "v": 0}, {"name": "ours", "v": 4, "default": True}, {"name": "new", "v": 3}]},
    ),
    "a list keyed by port": (
        {"list": [{"port": 80, "nodePort": 30080}]},
        {"list": [{"port": 80}]},
        {"list": [{"port": 80, "targetPort": 8080}]},
        {"list": [{"port": 80, "nodePort": 30080, "targetPort": 8080}]},
    ),
    "a list keyed by containerPort before name": (
        {"list": [{"containerPort": 80, "name": "old", "protocol": "TCP"}]},
        {"list": [{"containerPort": 80, "name": "old"}]},
        {"list": [{"containerPort": 80, "name": "new"}]},
        {"list": [{"containerPort": 80, "name": "new", "protocol": "TCP"}]},
    ),
    "one port number on two protocols is two ports": (
        {"list": [{"port": 53, "protocol": "UDP", "nodePort": 1}, {"port": 53, "protocol": "TCP", "nodePort": 2}]},
        {"list": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]},
        {"list": [{"port": 53, "protocol": "UDP", "name": "dns"}, {"port": 53, "protocol": "TCP", "name": "dns-tcp"}]},
        {
            "list": [
                {"port": 53, "protocol": "UDP", "nodePort": 1, "name": "dns"},
                {"port": 53, "protocol": "TCP", "nodePort": 2, "name": "dns-tcp"},
            ]
        },
    ),
    "a port without protocol is the one on TCP": (
        {"list": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}]},
        {},
        {"list": [{"containerPort": 53, "x": 1}, {"containerPort": 53, "protocol": "UDP"}]},
        {"list": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP", "x": 1}]},
    ),
    "names that repeat are no key": (
        {"list": [{"name": "a", "v": 1}, {"name": "a", "v": 2}]},
        {},
        {"list": [{"name": "a", "v": 3}]},
        {"list": [{"name": "a", "v": 3}]},
    ),
    "defaults within a list that is replaced whole are no difference": (
        {"list": [{"effect": "NoSchedule", "default": 1}]},
        {"list": [{"effect": "NoSchedule"}]},
        {"list": [{"effect": "NoSchedule"}]},
        {"list": [{"effect": "NoSchedule", "default": 1}]},
    ),
    "a list that is replaced whole and drifted is written as desired": (
        {"list": [{"effect": "Drifted", "default": 1}]},
        {"list": [{"effect": "NoSchedule"}]},
        {"list": [{"effect": "NoSchedule"}]},
        {"list": [{"effect": "NoSchedule"}]},
    ),
    "what every cluster appends to a list is no difference": (
        {"list": [{"key": "spot", "default": 1}, {"key": "node.kubernetes.io/not-ready"}]},
        {"list": [{"key": "spot"}]},
        {"list": [{"key": "spot"}]},
        {"list": [{"key": "spot", "default": 1}, {"key": "node.kubernetes.io/not-ready"}]},
    ),
    "one's own of what every cluster appends is written as desired": (
        {"list": [{"key": "node.kubernetes.io/not-ready", "v": 2, "default": 1}, {"key": "node.kubernetes.io/unreachable"}]},
        {"list": [{"key": "node.kubernetes.io/not-ready", "v": 1}]},
        {"list": [{"key": "node.kubernetes.io/not-ready", "v": 1}]},
        {"list": [{"key": "node.kubernetes.io/not-ready", "v": 1}]},
    ),
    "what somebody appended to a list that is replaced whole is removed": (
        {"list": [{"key": "spot", "default": 1}, {"key": "mine"}]},
        {"list": [{"key": "spot"}]},
        {"list": [{"key": "spot"}]},
        {"list": [{"key": "spot"}]},
    ),
    "a list may become a scalar": ({"v": [1]}, {"v": [1]}, {"v": 1}, {"v": 1}),
    "an object may become a scalar": ({"v": {"a": 1}}, {"v": {"a": 1}}, {"v": "a"}, {"v": "a"}),
    "an object may become a list": ({"v": {"a": 1}}, {"v": {"a": 1}}, {"v": [1]}, {"v": [1]}),
    "a scalar may become an object": ({"v": 1}, {"v": 1}, {"v": {"a": 1}}, {"v": {"a": 1}}),
    "an integer and an equal float are the same": ({"v": 1}, {"v": 1.0}, {"v": 1.0}, {"v": 1}),
    "true is not 1": ({"v": 1}, {"v": 1}, {"v": True}, {"v": True}),
    "null where nothing is observed does nothing": ({}, {}, {"v": None}, {}),
    "null over a value that was applied is sent": ({"v": 1}, {"v": 1}, {"v": None}, {"v": None}),
    "null over a value that appeared under a null leaves it": ({"v": 1}, {"v": None}, {"v": None}, {"v": 1}),
    "null over an object removes what was applied": ({"v": {"a": 1, "b": 2}}, {"v": {"a": 1}}, {"v": None}, {"v": {"b": 2}}),
    "a null given up leaves what is there": ({"v": 1}, {"v": None}, {}, {"v": 1}),
    "an emptied list-map keeps what others put there": (
        {"list": [{"name": "ours"}, {"name": "theirs"}]},
        {"list": [{"name": "ours"}]},
        {"list": []},
        {"list": [{"name": "theirs"}]},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_merge_follows_its_rules(case: tuple[JsonObject, JsonObject, JsonObject, JsonObject]):
    observed, last, desired, expected = case

    assert merge(observed, last, desired, NO_SCHEMA) == expected


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_merging_the_result_again_changes_nothing(case: tuple[JsonObject, JsonObject, JsonObject, JsonObject]):
    observed, last, desired, _ = case
    merged = merge(observed, last, desired, NO_SCHEMA)

    assert merge(merged, desired, desired, NO_SCHEMA) is merged


scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 2.0]) | st.sampled_from(["a", "b", "TCP", "UDP"])
keys = st.sampled_from(["name", "port", "protocol", "v", "w"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4), max_leaves=12)
objects = st.dictionaries(keys, values, max_size=4)


@given(value=objects)
def test_merging_a_value_into_itself_is_the_identical_value(value: JsonObject):
    assert merge(value, value, value, NO_SCHEMA) is value


@given(observed=objects, last=objects)
def test_desiring_nothing_that_was_not_applied_leaves_the_identical_value(observed: JsonObject, last: JsonObject):
    unrelated = {key: value for key, value in last.items() if key not in observed}

    assert merge(observed, unrelated, {}, NO_SCHEMA) is observed


@given(observed=objects, last=objects, desired=objects)
def test_every_desired_value_but_null_is_in_the_result(observed: JsonObject, last: JsonObject, desired: JsonObject):
    merged = merge(observed, last, desired, NO_SCHEMA)

    assert _contains(merged, desired)


@given(observed=objects, last=objects, desired=objects)
def test_inputs_are_not_changed(observed: JsonObject, last: JsonObject, desired: JsonObject):
    before = repr((observed, last, desired))

    merge(observed, last, desired, NO_SCHEMA)

    assert repr((observed, last, desired)) == before


@given(observed=objects, last=objects, desired=objects)
def test_a_result_that_means_the_same_is_the_identical_object(observed: JsonObject, last: JsonObject, desired: JsonObject):
    merged = merge(observed, last, desired, NO_SCHEMA)

    # Null and absent mean the same, but a null that is sent is a request.
    if same(merged, observed) and repr(merged) == repr(observed):
        assert merged is observed


def _contains(merged: JsonValue, desired: JsonValue) -> bool:
    """Whether `merged` has all that is desired. List maps may have more elements, and another order."""
    if desired is None:
        return True
    if isinstance(desired, dict):
        return isinstance(merged, dict) and all(value is None or _contains(merged.get(key), value) for key, value in desired.items())
    if isinstance(desired, list):
        return isinstance(merged, list) and all(any(_contains(there, wanted) for there in merged) for wanted in desired)
    return same(merged, desired)


@given(observed=objects, last=objects, desired=objects)
def test_merging_any_result_again_changes_nothing(observed: JsonObject, last: JsonObject, desired: JsonObject):
    merged = merge(observed, last, desired, NO_SCHEMA)

    assert merge(merged, desired, desired, NO_SCHEMA) is merged


# -- lists without keys ------------------------------------------------------------------------------------------------

ROUTES: JsonValue = [{"match": "canary", "route": "v2"}, {"route": "v1"}]


@pytest.mark.parametrize(
    "observed", [[{"route": "v1"}, {"match": "canary", "route": "v2"}], [{"match": "canary", "route": "v1"}, {"route": "v1"}]]
)
def test_drift_in_a_list_without_keys_is_never_repaired_into_a_mixture(observed: JsonValue):
    """Somebody swapped the elements or changed one. No element may be a mixture of two."""
    assert merge(observed, ROUTES, ROUTES, NO_SCHEMA) == ROUTES


def test_defaults_in_the_elements_of_a_list_without_keys_are_no_drift():
    observed: JsonValue = [{"match": "canary", "route": "v2", "weight": 1}, {"route": "v1", "weight": 1}]

    assert merge(observed, ROUTES, ROUTES, NO_SCHEMA) is observed


elements = st.dictionaries(
    st.sampled_from("pqr"), st.integers(0, 2) | st.lists(st.dictionaries(st.sampled_from("xy"), st.integers(0, 1)), max_size=2), max_size=3
)
unkeyed_lists = st.lists(elements, max_size=3)


@given(observed=unkeyed_lists, last=unkeyed_lists, desired=unkeyed_lists)
def test_a_list_without_keys_is_as_observed_or_as_desired(observed: list[JsonValue], last: list[JsonValue], desired: list[JsonValue]):
    for before in (last, desired):
        assert merge(observed, before, desired, NO_SCHEMA) in (observed, desired)


@given(observed=unkeyed_lists, last=unkeyed_lists, desired=unkeyed_lists)
def test_second_merge_after_defaults_finds_nothing_to_do(observed: list[JsonValue], last: list[JsonValue], desired: list[JsonValue]):
    merged = merge(observed, last, desired, NO_SCHEMA)
    assert isinstance(merged, list)
    defaulted: JsonValue = [{**element, "default": 1} if isinstance(element, dict) else element for element in merged]

    assert merge(defaulted, desired, desired, NO_SCHEMA) is defaulted
