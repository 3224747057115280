"""Remembers facts from one sync to the next, the latest of them."""

from collections import OrderedDict
from typing import Final

from metaloop.reconciler.core.steps import Fact

_REMEMBERED: Final = 10_000


class Facts:
    """What the syncs of this process learned. When there are too many facts, the oldest are forgotten."""

    def __init__(self) -> None:
        self._facts: OrderedDict[Fact, None] = OrderedDict()

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._facts

    def learn(self, fact: Fact) -> None:
        """Remember a fact."""
        self._facts[fact] = None
        if len(self._facts) > _REMEMBERED:
            self._facts.popitem(last=False)

    def forget(self, fact: Fact) -> None:
        """Remember a fact no longer, if it was known."""
        self._facts.pop(fact, None)
