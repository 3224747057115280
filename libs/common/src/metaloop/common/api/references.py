"""References: the Secrets and ConfigMaps that components refer to, at paths that their controller names.

A component refers to an object by its name, or as Kubernetes does: `{name: settings, key: values, optional: true}`. The
object is in the component's own namespace. Only a component without a namespace says in which one it is.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from metaloop.common.api import fields
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured

ReferenceKind: TypeAlias = Literal["Secret", "ConfigMap"]
NotFound: TypeAlias = Literal["Retry", "IgnoreOnDeletion"]
"""What happens while the object does not exist: the component waits, always or only as long as it is not deleted."""

KINDS: Final[tuple[ReferenceKind, ...]] = ("Secret", "ConfigMap")
NOT_FOUND: Final[tuple[NotFound, ...]] = ("Retry", "IgnoreOnDeletion")

_PATH: Final = re.compile(r"(?:\.[A-Za-z_][A-Za-z0-9_-]*(?:\[\*\])?)+")
_ALL: Final = "[*]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRule:
    """Where components refer to objects of a kind."""

    path: str
    """Such as `.spec.valuesFrom[*]`: `[*]` stands for each element of a list."""
    kind: ReferenceKind
    not_found: NotFound = "Retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One object that a component refers to."""

    path: str
    """Where it does, such as `.spec.valuesFrom[0]`."""
    kind: ReferenceKind
    namespace: str
    name: str
    key: str = ""
    """Which of the object's data is meant. Empty: all of it."""
    not_found: NotFound = "Retry"
    is_optional: bool = False
    """Whether the object, or its key, may be missing."""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def parse_references(spec: JsonObject) -> tuple[ReferenceRule, ...]:
    """The `references` in the spec of a controller. Raises InvalidSpec for the first invalid one."""
    rules: list[ReferenceRule] = []
    for index, raw in enumerate(fields.objects_at(spec, "references", "spec")):
        field = f"spec.references[{index}]"
        fields.require_known(raw, field, known=("path", "kind", "notFound"))
        path = fields.required_text(raw, "path", field)
        if not _PATH.fullmatch(path):
            raise InvalidSpec(f"{field}.path", f"must be a path like .spec.valuesFrom[*], not {path!r}")
        fields.required_text(raw, "kind", field)
        kind = fields.one_of(raw, "kind", field, choices=KINDS, default=KINDS[0])
        not_found = fields.one_of(raw, "notFound", field, choices=NOT_FOUND, default=NOT_FOUND[0])
        rules.append(ReferenceRule(path=path, kind=cast("ReferenceKind", kind), not_found=cast("NotFound", not_found)))
    return tuple(rules)


def references_of(component: JsonObject, rules: Iterable[ReferenceRule]) -> tuple[Reference, ...]:
    """The objects that a component refers to, each path once. Raises InvalidParent for what is no reference."""
    found = [
        _reference(component, value, path, rule)
        for rule in rules
        for path, value in _values_at(component, rule.path.strip(".").split("."), "")
        if value is not None and value != ""
    ]
    return tuple({reference.path: reference for reference in found}.values())


def _values_at(value: JsonValue, names: list[str], path: str) -> Iterator[tuple[str, JsonValue]]:
    """What is at the rest of a path, with the path of each. A list that is not there has no elements."""
    if not names:
        yield path, value
        return
    name = names[0].removesuffix(_ALL)
    inner = value.get(name) if is_object(value) else None
    if name == names[0]:
        yield from _values_at(inner, names[1:], f"{path}.{name}")
        return
    for index, element in enumerate(inner if isinstance(inner, list) else ()):
        yield from _values_at(element, names[1:], f"{path}.{name}[{index}]")


def _reference(component: JsonObject, value: JsonValue, path: str, rule: ReferenceRule) -> Reference:
    field = path.removeprefix(".")
    raw: JsonObject = {"name": value} if isinstance(value, str) else value if is_object(value) else {}
    name, key = raw.get("name"), raw.get("key", "")
    if not isinstance(name, str) or not name or not isinstance(key, str):
        raise InvalidParent(field, f"must be the name of a {rule.kind}, or an object with a name and perhaps a key")
    return Reference(
        path=path,
        kind=rule.kind,
        namespace=_namespace(component, raw, field),
        name=name,
        key=key,
        not_found=rule.not_found,
        is_optional=raw.get("optional") is True,
    )


def _namespace(component: JsonObject, raw: JsonObject, field: str) -> str:
    own, stated = unstructured.namespace(component), raw.get("namespace") or ""
    if own and stated not in {"", own}:
        raise InvalidParent(f"{field}.namespace", f"must be {own}: a component refers to objects in its own namespace only")
    if not own and not (isinstance(stated, str) and stated):
        raise InvalidParent(f"{field}.namespace", "is missing: the component is in no namespace itself")
    return own or str(stated)
