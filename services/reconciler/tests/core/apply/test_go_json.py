"""JSON text that must be byte for byte what Go encodes. Go's encoder wrote the expected texts."""

import pytest

from metaloop.common.json import JsonValue
from metaloop.reconciler.core.apply.go_json import go_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        ('<b>&\u2028\u2029é😀\x01\b\f\n"\\/', '"\\u003cb\\u003e\\u0026\\u2028\\u2029é😀\\u0001\\b\\f\\n\\"\\\\/"'),
        ([1.5, 1e21, 1e20, 1e-6, 1e-7, 1.5e-9, 2.5e300], "[1.5,1e+21,100000000000000000000,0.000001,1e-7,1.5e-9,2.5e+300]"),
        ([1.0, -0.0, 0.1], "[1,-0,0.1]"),
    ],
)
def test_text_is_gos(value: JsonValue, expected: str):
    assert go_json(value) == expected
