"""Label selectors, parsed from a `metav1.LabelSelector` or from kubectl's text form."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue, is_object

Labels: TypeAlias = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a key: `key operator (values)`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether `labels` meet the condition."""
        return _OPERATORS[self.operator](labels.get(self.key), self.values)

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case _:
                return f"{self.key} {self.operator.lower()} ({','.join(self.values)})"


_OPERATORS: dict[str, Callable[[str | None, tuple[str, ...]], bool]] = {
    "In": lambda value, values: value is not None and value in values,
    "NotIn": lambda value, values: value is None or value not in values,
    "Exists": lambda value, _values: value is not None,
    "DoesNotExist": lambda value, _values: value is None,
    "Gt": lambda value, values: value is not None and _is_number(value) and int(value) > int(values[0]),
    "Lt": lambda value, values: value is not None and _is_number(value) and int(value) < int(values[0]),
}
_OPERATORS_OF_OBJECTS = ("In", "NotIn", "Exists", "DoesNotExist")
"""The operators of a `metav1.LabelSelector`. kubectl's text form also has comparisons of numbers."""


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class Selector:
    """The conjunction of `requirements`; without any it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        """Whether `labels` meet every requirement."""
        for requirement in self.requirements:  # noqa: SIM110 - all() of a generator takes twice as long
            if not requirement.matches(labels):
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether it matches everything."""
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()


def parse_selector(raw: JsonValue, field: str, *, labels_key: str = "matchLabels") -> Selector:
    """The selector of a `{matchLabels, matchExpressions}` object; None and `{}` match everything.

    `labels_key` is `matchAnnotations` for an annotation selector. Raises InvalidSpec with the path below `field`.
    """
    if raw is None:
        return EVERYTHING
    if not is_object(raw):
        raise InvalidSpec(field, "must be an object")
    return Selector((*_equalities(raw.get(labels_key), f"{field}.{labels_key}"), *_expressions(raw, field)))


def _equalities(raw: JsonValue, field: str) -> list[Requirement]:
    if raw is None:
        return []
    if not is_object(raw) or not all(isinstance(value, str) for value in raw.values()):
        raise InvalidSpec(field, "must be a map of strings")
    return [Requirement(key, "In", (str(value),)) for key, value in sorted(raw.items())]


def _expressions(raw: JsonObject, field: str) -> list[Requirement]:
    entries = raw.get("matchExpressions")
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise InvalidSpec(f"{field}.matchExpressions", "must be a list")
    return [_expression(entry, f"{field}.matchExpressions[{index}]") for index, entry in enumerate(entries)]


def _expression(raw: JsonValue, field: str) -> Requirement:
    if not is_object(raw) or not isinstance(key := raw.get("key"), str) or not key:
        raise InvalidSpec(field, "must be an object with a key")
    operator, values = raw.get("operator"), raw.get("values") or []
    if not isinstance(operator, str) or operator not in _OPERATORS_OF_OBJECTS:
        raise InvalidSpec(f"{field}.operator", f"must be one of {', '.join(_OPERATORS_OF_OBJECTS)}, not {operator!r}")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidSpec(f"{field}.values", "must be a list of strings")
    if (operator in {"In", "NotIn"}) != bool(values):
        raise InvalidSpec(f"{field}.values", f"{operator} needs values" if not values else f"{operator} takes no values")
    return Requirement(key, operator, tuple(map(str, values)))


_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?P<key>(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?/)?{_NAME})"
_VALUE = rf"(?:{_NAME})?"
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_SET = re.compile(rf"{_KEY}\s+(?P<operator>in|notin)\s*\(\s*(?P<values>{_VALUE}(?:\s*,\s*{_VALUE})*)\s*\)")
_EQUALITY = re.compile(rf"{_KEY}\s*(?P<operator>==|=|!=)\s*(?P<value>{_VALUE})")
_COMPARISON = re.compile(rf"{_KEY}\s*(?P<operator>[<>])\s*(?P<value>{_NUMBER.pattern})")
_EXISTENCE = re.compile(rf"(?P<not>!?)\s*{_KEY}")
_BETWEEN_TERMS = re.compile(r",(?![^(]*\))")


def parse_selector_text(text: str) -> Selector:
    """The selector of kubectl's text form (`a=b,c in (d,e),!f,g>1`); blank text matches everything.

    Raises InvalidSpec.
    """
    terms = [term.strip() for term in _BETWEEN_TERMS.split(text)] if text.strip() else []
    return Selector(tuple(_term(term, text) for term in terms))


def _term(term: str, text: str) -> Requirement:
    if found := _SET.fullmatch(term):
        values = tuple(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], "In" if found["operator"] == "in" else "NotIn", values)
    if found := _EQUALITY.fullmatch(term):
        return Requirement(found["key"], "NotIn" if found["operator"] == "!=" else "In", (found["value"],))
    if found := _COMPARISON.fullmatch(term):
        return Requirement(found["key"], "Gt" if found["operator"] == ">" else "Lt", (found["value"],))
    if found := _EXISTENCE.fullmatch(term):
        return Requirement(found["key"], "DoesNotExist" if found["not"] else "Exists")
    raise InvalidSpec("label selector", f"can't read {term!r} in {text!r}")
