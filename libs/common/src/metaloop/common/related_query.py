"""A query for related objects: what one rule of a customize hook selects.

The reconciler turns the rules of a customize hook into queries and resolves what they mean for the parent: a v1 hook,
for example, sees only its parent's namespace. The watcher subscribes the parent to the queries and selects by them.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from metaloop.common.json import JsonValue
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import EVERYTHING, Labels, Requirement, Selector


@dataclass(frozen=True, slots=True)
class Anywhere:
    """In any namespace, or in none."""


@dataclass(frozen=True, slots=True)
class InNamespace:
    """In the namespace of this name. It means nothing to cluster-scoped objects."""

    name: str


@dataclass(frozen=True, slots=True)
class InNamespacesWith:
    """In every namespace whose labels match. No cluster-scoped object is in one."""

    labels: Selector


Where: TypeAlias = Anywhere | InNamespace | InNamespacesWith
ANYWHERE: Final = Anywhere()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedQuery:
    """The objects of one resource that meet every condition given here."""

    resource: ResourceId
    where: Where = ANYWHERE
    labels: Selector = EVERYTHING
    names: frozenset[str] = frozenset()
    """The names that are selected; empty: all."""
    watched: str = ""
    """The label selector within which the resource is watched, in kubectl's text form. Empty: all objects are.

    It has to match everything that the query selects.
    """

    def selects(self, *, name: str, labels: Labels) -> bool:
        """Whether an object with this name and these labels is selected, if the query reaches its namespace."""
        return (not self.names or name in self.names) and self.labels.matches(labels)

    def reaches(self, namespace: str, namespace_labels: Labels) -> bool:
        """Whether objects in a namespace can be selected; cluster-scoped objects have an empty one."""
        match self.where:
            case Anywhere():
                return True
            case InNamespace(name):
                return not namespace or namespace == name
            case InNamespacesWith(labels):
                return bool(namespace) and labels.matches(namespace_labels)
            case _:
                assert_never(self.where)

    def to_wire(self) -> list[JsonValue]:
        """The wire form. Equal queries have equal wire forms."""
        resource: list[JsonValue] = [self.resource.api_version, self.resource.resource]
        return [resource, _where_to_wire(self.where), _selector_to_wire(self.labels), [*sorted(self.names)], self.watched]

    @classmethod
    def from_wire(cls, wire: JsonValue) -> "RelatedQuery":
        """The query whose `to_wire` was `wire`. Raises ValueError or TypeError for anything else."""
        resource, where, labels, names, *rest = _list(wire)
        api_version, plural = _list(resource)
        return cls(
            resource=ResourceId(str(api_version), str(plural)),
            where=_where_from_wire(_list(where)),
            labels=_selector_from_wire(_list(labels)),
            names=frozenset(map(str, _list(names))),
            watched=str(rest[0]) if rest else "",
        )


def _selector_to_wire(selector: Selector) -> list[JsonValue]:
    return [[requirement.key, requirement.operator, [*requirement.values]] for requirement in selector.requirements]


def _selector_from_wire(wire: list[JsonValue]) -> Selector:
    return Selector(tuple(_requirement(*_list(entry)) for entry in wire))


def _requirement(key: JsonValue, operator: JsonValue, values: JsonValue) -> Requirement:
    return Requirement(str(key), str(operator), tuple(map(str, _list(values))))


def _where_to_wire(where: Where) -> list[JsonValue]:
    match where:
        case Anywhere():
            return []
        case InNamespace(name):
            return ["name", name]
        case InNamespacesWith(labels):
            return ["labels", _selector_to_wire(labels)]
        case _:
            assert_never(where)


def _where_from_wire(wire: list[JsonValue]) -> Where:
    match wire:
        case []:
            return ANYWHERE
        case ["name", str(name)]:
            return InNamespace(name)
        case ["labels", list(labels)]:
            return InNamespacesWith(_selector_from_wire(labels))
        case _:
            raise ValueError(f"namespaces that can't be read: {wire!r}")


def _list(wire: JsonValue) -> list[JsonValue]:
    if isinstance(wire, list):
        return wire
    raise TypeError(f"a list was expected, not {wire!r}")
