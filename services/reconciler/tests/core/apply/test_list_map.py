"""Which lists are maps, and what their keys are."""

import pytest

from metaloop.common.json import JsonValue
from metaloop.reconciler.core.apply.list_map import Fields, by_key, key_fields

Version = list[JsonValue]


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([[]], None),
        ([[{"name": "a"}, {"name": "b"}]], ("name",)),
        ([[{"name": "a"}], [{"x": 1}]], None),
        ([[{"name": "a"}, "b"]], None),
        ([[{"name": "a"}, {"name": "a"}]], None),
        ([[{"name": "a"}], [{"name": "a"}]], ("name",)),
        ([[{"name": None}]], None),
        ([[{"port": 53}, {"port": 53, "protocol": "UDP"}]], ("port", "protocol")),
        ([[{"port": 53}, {"port": 53, "protocol": "TCP"}]], None),
        ([[{"port": 80, "name": "x"}]], ("port",)),
        ([[{"port": 80, "name": "x"}, {"port": 80, "name": "y"}]], ("name",)),
        ([[{"containerPort": 80, "port": 1}]], ("containerPort",)),
        ([[{"mountPath": "/a", "name": "x"}, {"mountPath": "/b", "name": "x"}]], ("mountPath",)),
    ],
)
def test_key_is_the_first_that_tells_all_elements_apart(versions: list[Version], expected: Fields | None):
    assert key_fields(*versions) == expected


def test_numbers_and_their_text_are_one_key():
    assert list(by_key([{"port": 80}], ("port",))) == list(by_key([{"port": "80"}], ("port",)))
