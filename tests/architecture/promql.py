"""What a PromQL expression asks for: its selectors, and the labels by which it groups."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import promql_parser as promql

_PARTS: Final = ("expr", "lhs", "rhs", "vector_selector", "param")
"""The attributes of a node that hold other nodes, beside the arguments of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one expression needs of the exported metrics."""

    series: frozenset[str]
    """The names of time series."""
    labels: frozenset[str]
    """The labels of matchers and groupings."""


def asked_in(expression: str) -> Asked:
    """What an expression asks for. Raises ValueError for one that is no PromQL."""
    nodes = [*_nodes(promql.parse(expression))]
    selectors = [node for node in nodes if isinstance(node, promql.VectorSelector)]
    matched = {matcher.name for selector in selectors for matcher in selector.matchers.matchers}
    grouped = {label for node in nodes if isinstance(node, promql.AggregateExpr) and node.modifier for label in node.modifier.labels}
    return Asked(series=frozenset(selector.name or "" for selector in selectors), labels=frozenset(matched | grouped))


def _nodes(node: object) -> Iterator[object]:
    """A node and everything below it."""
    yield node
    inner = [getattr(node, part, None) for part in _PARTS]
    for each in (*inner, *getattr(node, "args", ())):
        if each is not None and not isinstance(each, str):
            yield from _nodes(each)
