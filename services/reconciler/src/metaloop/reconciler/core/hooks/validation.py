"""Validates an answer against what its controller declares. The resulting children may be applied as they are.

Rules
    1. A child that could be created but would never be observed is invalid, since every sync would create it again. Its
       kind is not declared, its namespace is not its parent's, it is cluster-scoped although its parent is namespaced,
       the selector does not match its labels, or the API server generates its name.
    2. One invalid child makes the whole answer invalid before anything is written. Half of an answer is not what its
       author meant.
    3. A child without a namespace gets its parent's. Every child gets the tracking metadata of its kind.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from metaloop.common.api.hook import HookKeys
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.model import Answer, ChildGroup, DesiredChild, Observed


class ChildFormat(Protocol):
    """How answers of a kind name their children, and how the kind recognizes its own."""

    @property
    def keys(self) -> HookKeys:
        """The names of the fields."""
        ...

    @property
    def with_tracking(self) -> Callable[[JsonObject, Observed], JsonObject]:
        """Adds the label or annotation to a desired child by which the kind recognizes it."""
        ...


def desired_children(answer: Answer, observed: Observed, *, variant: ChildFormat) -> tuple[DesiredChild, ...]:
    """The children that `answer` asks for. Raises InvalidAnswer, which names the first invalid field."""
    declared = {(group.info.api_version, group.info.kind): group for group in observed.groups}
    key = variant.keys.children
    candidates = [_Candidate(raw, f"{key}[{index}]") for index, raw in enumerate(answer.children)]
    children = tuple([_desired(each, declared=declared, observed=observed, variant=variant) for each in candidates])
    _check_duplicates(children, key)
    return children


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One child of an answer, and its path there."""

    raw: JsonObject
    field: str

    def invalid(self, path: str, problem: str) -> InvalidAnswer:
        return InvalidAnswer(f"{self.field}{path}", f"{unstructured.describe(self.raw)} {problem}")


def _desired(
    candidate: _Candidate, *, declared: dict[tuple[str, str], ChildGroup], observed: Observed, variant: ChildFormat
) -> DesiredChild:
    raw = candidate.raw
    group = declared.get((unstructured.api_version(raw), unstructured.kind(raw)))
    if group is None:
        raise _undeclared(candidate)
    metadata = raw.get("metadata")
    if not is_object(metadata):
        raise candidate.invalid(".metadata", "must have an object here")
    name = _name(candidate, metadata)
    namespace = _namespace(candidate, metadata, info=group.info, observed=observed)
    for key in ("labels", "annotations"):
        _check_strings(candidate, metadata.get(key), f".metadata.{key}")
    placed: JsonObject = raw if metadata.get("namespace") or not namespace else {**raw, "metadata": {**metadata, "namespace": namespace}}
    obj = variant.with_tracking(placed, observed)
    _check_labels(candidate, obj, observed)
    return DesiredChild(info=group.info, method=group.method, namespace=namespace, name=name, obj=obj)


def _undeclared(candidate: _Candidate) -> InvalidAnswer:
    if not unstructured.api_version(candidate.raw):
        return candidate.invalid(".apiVersion", "must have a non-empty string here")
    kind = f"{unstructured.api_version(candidate.raw)} {unstructured.kind(candidate.raw)}"
    return candidate.invalid(".kind", f"is of a kind ({kind}) that the controller does not declare")


def _name(candidate: _Candidate, metadata: JsonObject) -> str:
    name = metadata.get("name")
    if isinstance(name, str) and name:
        return name
    if metadata.get("generateName"):
        raise candidate.invalid(".metadata.generateName", "must have a name instead: every sync would create another object")
    raise candidate.invalid(".metadata.name", "must have a non-empty string here")


def _namespace(candidate: _Candidate, metadata: JsonObject, *, info: ResourceInfo, observed: Observed) -> str:
    field, given = ".metadata.namespace", metadata.get("namespace") or ""
    if not isinstance(given, str):
        raise candidate.invalid(field, "must have a string here")
    if not info.namespaced:
        if observed.namespace:
            raise candidate.invalid("", "is cluster-scoped, and can't be the child of a namespaced parent")
        if given:
            raise candidate.invalid(field, "is cluster-scoped, and must have no namespace")
        return ""
    if observed.namespace and given not in {"", observed.namespace}:
        raise candidate.invalid(field, f"must be in its parent's namespace, {observed.namespace}")
    if not given and not observed.namespace:
        raise candidate.invalid(field, "must have a namespace: its parent is cluster-scoped")
    return given or observed.namespace


def _check_strings(candidate: _Candidate, raw: JsonValue, field: str) -> None:
    if raw is not None and not (is_object(raw) and all(isinstance(value, str) for value in raw.values())):
        raise candidate.invalid(field, "must have a map of strings here")


def _check_labels(candidate: _Candidate, obj: JsonObject, observed: Observed) -> None:
    if observed.selector is not None and not observed.selector.matches(unstructured.labels(obj)):
        raise candidate.invalid(".metadata.labels", f"does not match the parent's selector ({observed.selector})")


def _check_duplicates(children: tuple[DesiredChild, ...], key: str) -> None:
    seen: dict[tuple[str, str, str, str], int] = {}
    for index, child in enumerate(children):
        identity = (child.info.api_version, child.info.resource, child.namespace, child.name)
        first = seen.setdefault(identity, index)
        if first != index:
            raise InvalidAnswer(f"{key}[{index}]", f"{child} is listed twice, also as {key}[{first}]")
