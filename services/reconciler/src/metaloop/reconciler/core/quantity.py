"""Kubernetes quantities: `1000m` is `1`, and `1Gi` is `1024Mi`."""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final

from metaloop.common.json import JsonValue

_FORM: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)")
_FACTORS: Final = {
    **{suffix: Decimal(10) ** (3 * (power - 3)) for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))},
    **{f"{suffix}i": Decimal(1024) ** (power + 1) for power, suffix in enumerate("KMGTPE")},
}
_REMEMBERED: Final = 1024


def is_same_quantity(left: JsonValue, right: JsonValue) -> bool:
    """Whether both are quantities, and of one amount; a number is the quantity that it says."""
    amount = _amount_of(left)
    return amount is not None and amount == _amount_of(right)


def _amount_of(value: JsonValue) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return _amount(str(value))


@lru_cache(_REMEMBERED)
def _amount(text: str) -> Decimal | None:
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    number, exponent, suffix = match.groups()
    return Decimal(number + exponent) if exponent else Decimal(number) * _FACTORS[suffix or ""]
