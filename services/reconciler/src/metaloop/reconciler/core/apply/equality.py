"""When two JSON values mean the same to an API server.

Rules
    1. Numbers compare by value: 1 equals 1.0. A boolean is not a number, although `True == 1` in Python.
    2. In an object, null and absent mean the same: typed kinds drop nulls, and Go encodes many of them
       (`creationTimestamp: null`).
    3. The order of a list matters. The order of an object's keys does not.
    4. Values that can be written in several ways compare by meaning: `1000m` is the quantity `1`, and base64 may
       contain line breaks.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from metaloop.common.json import JsonValue
from metaloop.reconciler.core.apply.schema import Schema

_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_FACTORS: Final = {
    **{suffix: Decimal(10) ** (3 * (power - 3)) for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))},
    **{f"{suffix}i": Decimal(1024) ** (power + 1) for power, suffix in enumerate("KMGTPE")},
}
_CACHED_AMOUNTS: Final = 1024


def alike(left: JsonValue, right: JsonValue, schema: Schema) -> bool:
    """Whether two values of this schema mean the same. The schemas of their parts are not considered."""
    if same(left, right):
        return True
    match schema.scalar:
        case "literal":
            return False
        case "quantity":
            return is_same_quantity(left, right)
        case "bytes":
            return isinstance(left, str) and isinstance(right, str) and "".join(left.split()) == "".join(right.split())


def same(left: JsonValue, right: JsonValue) -> bool:
    """Whether `left` and `right` mean the same, whatever their schema."""
    if left is right:
        return True
    if isinstance(left, dict):
        return isinstance(right, dict) and _same_objects(left, right)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return False  # equal booleans are identical, so the first line has found them
    return left == right


def _same_objects(left: dict[str, JsonValue], right: dict[str, JsonValue]) -> bool:
    for key, value in left.items():
        if not same(value, right.get(key)):
            return False
    return all(key in left or value is None for key, value in right.items())


def is_same_quantity(left: JsonValue, right: JsonValue) -> bool:
    """Whether both are quantities of the same amount. A number counts as the quantity of that amount."""
    amount = _amount_of(left)
    return amount is not None and amount == _amount_of(right)


def _amount_of(value: JsonValue) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return _amount(str(value))


@lru_cache(_CACHED_AMOUNTS)
def _amount(text: str) -> Decimal | None:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    return Decimal(number + exponent) if exponent else Decimal(number) * _FACTORS[suffix or ""]
