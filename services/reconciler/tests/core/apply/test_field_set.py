"""Which fields a field manager owns."""

from metaloop.common.json import JsonObject
from metaloop.reconciler.core.apply.field_set import owned_part, union, without

OWNED: JsonObject = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:names": {'v:"a"': {}},
        "f:ports": {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}},
        "f:rules": {},
    },
}


def test_owned_part_has_what_is_owned_and_nothing_else():
    value: JsonObject = {
        "metadata": {"labels": {"app": "mine", "theirs": "x"}, "uid": "u"},
        "spec": {
            "names": ["a", "b"],
            "ports": [{"port": 53, "protocol": "TCP", "name": "dns", "nodePort": 1}, {"port": 53, "protocol": "UDP"}],
            "rules": [{"any": "thing"}],
            "other": 1,
        },
        "status": {},
    }

    assert owned_part(value, OWNED) == {
        "metadata": {"labels": {"app": "mine"}},
        "spec": {"names": ["a"], "ports": [{"port": 53, "protocol": "TCP", "name": "dns"}], "rules": [{"any": "thing"}]},
    }


def test_what_is_owned_and_not_there_is_left_out():
    assert owned_part({}, OWNED) == {}


def test_union_has_both():
    one: JsonObject = {"f:a": {"f:b": {}}, "f:d": {}}
    other: JsonObject = {"f:a": {"f:c": {}}, "f:d": {"f:e": {}}}

    assert union(one, other) == {"f:a": {"f:b": {}, "f:c": {}}, "f:d": {"f:e": {}}}


def test_without_takes_empty_objects_with_it():
    assert without({"f:a": {"f:b": {"f:c": {}}}, "f:d": {}}, "a", "b", "c") == {"f:d": {}}
    assert without({"f:a": {"f:b": {}, "f:c": {}}}, "a", "b") == {"f:a": {"f:c": {}}}
    assert without({"f:d": {}}, "a", "b") == {"f:d": {}}
