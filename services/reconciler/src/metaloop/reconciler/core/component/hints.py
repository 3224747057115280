"""Hints: what an annotation says about the status of an object that its kind does not tell."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What is known of an object's status beforehand."""

    has_observed_generation: bool = False
    """Its status will state an observedGeneration, even if it has none yet."""
    has_ready_condition: bool = False
    """Its status will have a condition Ready, even if it has none yet."""
    conditions: tuple[str, ...] = ()
    """The conditions that must be true."""


NO_HINTS: Final = Hints()


def hints_of(text: str) -> Hints:
    """The hints in a list like `has-observed-generation,conditions=A;B`. Raises ValueError for an unknown one."""
    hints: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, value = entry.partition("=")
        hints[name.strip().lower()] = value
    unknown = sorted(hints.keys() - {"has-observed-generation", "has-ready-condition", "conditions"})
    if unknown:
        raise ValueError(f"there is no hint {unknown[0]!r}: there are has-observed-generation, has-ready-condition and conditions=A;B")
    conditions = tuple(filter(None, map(str.strip, hints.get("conditions", "").split(";"))))
    if "conditions" in hints and not conditions:
        raise ValueError("the hint 'conditions' names no condition: it is written as conditions=A;B")
    return Hints(
        has_observed_generation="has-observed-generation" in hints,
        has_ready_condition="has-ready-condition" in hints,
        conditions=conditions,
    )
