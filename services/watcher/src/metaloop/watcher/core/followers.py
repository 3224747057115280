"""Which parents follow a related object: all interests in one resource, found by what the object is and where it is.

An interest is kept under what it asks for most plainly: a name, else a label's value, and that within a namespace, or within namespaces that have
a label's value, or anywhere. So an object finds its few possible followers by its own name, labels and namespace, however many parents follow
something else. What is found is tried before it is told.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from metaloop.common.interest import Anywhere, InNamespace, InNamespacesWith, Interest
from metaloop.common.job import JobKey
from metaloop.common.objects.selector import Labels
from metaloop.watcher.core.adopters import equality_of
from metaloop.watcher.core.record import ObjectKey

Space: TypeAlias = tuple[str, ...]
"""Where an interest looks: `("anywhere",)`, `("in", namespace)`, `("with", key, value)` or `("with",)` for namespaces by their labels."""
What: TypeAlias = tuple[str, ...]
"""What it looks for there: `("name", name)`, `("label", key, value)` or `()`."""

_ANYWHERE: Space = ("anywhere",)
_WITH_OTHERS: Space = ("with",)
_ANYTHING: What = ()


@dataclass(frozen=True, slots=True, eq=False)
class Follower:
    """One interest of one parent."""

    key: JobKey
    interest: Interest


@dataclass(slots=True)
class Followers:
    """All interests in one resource."""

    _spaces: dict[Space, dict[What, dict[Follower, None]]] = field(default_factory=dict[Space, dict[What, dict[Follower, None]]])
    """Each follower once for every name that it asks for; never an empty dict."""

    def __bool__(self) -> bool:
        return bool(self._spaces)

    def add(self, follower: Follower) -> None:
        """Have `follower` found from now on."""
        whats = self._spaces.setdefault(_space(follower.interest), {})
        for what in _whats(follower.interest):
            whats.setdefault(what, {})[follower] = None

    def remove(self, follower: Follower) -> None:
        """Have `follower` found no more."""
        space = _space(follower.interest)
        whats = self._spaces[space]
        for what in _whats(follower.interest):
            del whats[what][follower]
            if not whats[what]:
                del whats[what]
        if not whats:
            del self._spaces[space]

    def of(self, key: ObjectKey, labels: Labels, namespace_labels: Labels) -> Iterator[JobKey]:
        """The parents that follow an object with these labels, in a namespace with those; one may come twice."""
        namespace, name = key
        for space in self._spaces_of(namespace, namespace_labels):
            whats = self._spaces.get(space)
            for follower in _candidates(whats, name, labels) if whats else ():
                interest = follower.interest
                if interest.selects(name=name, labels=labels) and interest.reaches(namespace, namespace_labels):
                    yield follower.key

    def by_namespace_labels(self) -> Iterator[Follower]:
        """Those who follow objects in namespaces with certain labels; one may come twice."""
        for space, whats in self._spaces.items():
            if space[0] == "with":
                for followers in whats.values():
                    yield from followers

    def _spaces_of(self, namespace: str, labels: Labels) -> Iterator[Space]:
        yield _ANYWHERE
        if namespace:
            yield "in", namespace
            yield _WITH_OTHERS
            for key, value in labels.items():
                yield "with", key, value
        else:  # a cluster-scoped object is within reach of whoever names any namespace
            yield from [space for space in self._spaces if space[0] == "in"]


def _candidates(whats: dict[What, dict[Follower, None]], name: str, labels: Labels) -> Iterator[Follower]:
    yield from whats.get(("name", name), ())
    yield from whats.get(_ANYTHING, ())
    for key, value in labels.items():
        yield from whats.get(("label", key, value), ())


def _space(interest: Interest) -> Space:
    match interest.where:
        case Anywhere():
            return _ANYWHERE
        case InNamespace(name):
            return "in", name
        case InNamespacesWith(labels):
            pair = equality_of(labels)
            return ("with", *pair) if pair else _WITH_OTHERS
        case _:
            assert_never(interest.where)


def _whats(interest: Interest) -> Iterator[What]:
    if interest.names:
        for name in interest.names:
            yield "name", name
        return
    pair = equality_of(interest.labels)
    yield ("label", *pair) if pair else _ANYTHING
