"""Which parents are subscribed to an object: all subscriptions to one resource, indexed by what they select.

A subscription is filed under the narrowest condition of its query: a name, or else one label with its value, within a
namespace, within namespaces that carry a label, or anywhere. An object finds its few candidates by its own name, labels
and namespace, however many subscriptions there are to other objects. Each candidate's query is then evaluated in full.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from metaloop.common.job import JobKey
from metaloop.common.objects.selector import Labels
from metaloop.common.related_query import Anywhere, InNamespace, InNamespacesWith, RelatedQuery
from metaloop.watcher.core.labels import equality_of
from metaloop.watcher.core.record import ObjectKey

WhereKey: TypeAlias = tuple[str, ...]
"""Where a query looks: `("anywhere",)`, `("in", namespace)`, or `("with", key, value)` or `("with",)` by labels."""
WhatKey: TypeAlias = tuple[str, ...]
"""What it looks for there: `("name", name)`, `("label", key, value)` or `()`."""

_ANYWHERE: WhereKey = ("anywhere",)
_WITH_OTHERS: WhereKey = ("with",)
_ANYTHING: WhatKey = ()


@dataclass(frozen=True, slots=True, eq=False)
class Subscription:
    """One query of one unit of work."""

    key: JobKey
    query: RelatedQuery


@dataclass(slots=True)
class SubscriptionIndex:
    """All subscriptions to one resource."""

    _by_where: dict[WhereKey, dict[WhatKey, dict[Subscription, None]]] = field(
        default_factory=dict[WhereKey, dict[WhatKey, dict[Subscription, None]]]
    )
    """Holds a subscription once for each name that its query lists, else once; no dict in it is empty."""

    def __bool__(self) -> bool:
        return bool(self._by_where)

    def add(self, subscription: Subscription) -> None:
        """Index `subscription`."""
        by_what = self._by_where.setdefault(_where_key(subscription.query), {})
        for what in _what_keys(subscription.query):
            by_what.setdefault(what, {})[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        """Remove `subscription`, which must be indexed."""
        where = _where_key(subscription.query)
        by_what = self._by_where[where]
        for what in _what_keys(subscription.query):
            del by_what[what][subscription]
            if not by_what[what]:
                del by_what[what]
        if not by_what:
            del self._by_where[where]

    def subscribers_of(self, key: ObjectKey, labels: Labels, namespace_labels: Labels) -> Iterator[JobKey]:
        """The subscribers to an object, by its labels and those of its namespace. A key may occur more than once."""
        namespace, name = key
        for where in self._where_keys_of(namespace, namespace_labels):
            by_what = self._by_where.get(where)
            for subscription in _candidates(by_what, name, labels) if by_what else ():
                query = subscription.query
                if query.selects(name=name, labels=labels) and query.reaches(namespace, namespace_labels):
                    yield subscription.key

    def by_namespace_labels(self) -> Iterator[Subscription]:
        """The subscriptions that select namespaces by labels. One may occur more than once."""
        for where, by_what in self._by_where.items():
            if where[0] == "with":
                for subscriptions in by_what.values():
                    yield from subscriptions

    def _where_keys_of(self, namespace: str, labels: Labels) -> Iterator[WhereKey]:
        yield _ANYWHERE
        if namespace:
            yield "in", namespace
            yield _WITH_OTHERS
            for key, value in labels.items():
                yield "with", key, value
        else:  # a query for any namespace reaches cluster-scoped objects
            yield from [where for where in self._by_where if where[0] == "in"]


def _candidates(by_what: dict[WhatKey, dict[Subscription, None]], name: str, labels: Labels) -> Iterator[Subscription]:
    yield from by_what.get(("name", name), ())
    yield from by_what.get(_ANYTHING, ())
    for key, value in labels.items():
        yield from by_what.get(("label", key, value), ())


def _where_key(query: RelatedQuery) -> WhereKey:
    match query.where:
        case Anywhere():
            return _ANYWHERE
        case InNamespace(name):
            return "in", name
        case InNamespacesWith(labels):
            pair = equality_of(labels)
            return ("with", *pair) if pair else _WITH_OTHERS
        case _:
            assert_never(query.where)


def _what_keys(query: RelatedQuery) -> Iterator[WhatKey]:
    if query.names:
        for name in query.names:
            yield "name", name
        return
    pair = equality_of(query.labels)
    yield ("label", *pair) if pair else _ANYTHING
