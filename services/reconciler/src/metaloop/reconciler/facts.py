"""Remembers the most recent facts from one sync to the next."""

from collections import OrderedDict
from typing import Final

from metaloop.reconciler.core.steps import Fact

_CAPACITY: Final = 10_000


class Facts:
    """What the syncs of this process have learned. When there are too many facts, the oldest is forgotten."""

    def __init__(self) -> None:
        self._facts: OrderedDict[Fact, None] = OrderedDict()

    def __contains__(self, fact: Fact) -> bool:
        return fact in self._facts

    def learn(self, fact: Fact) -> None:
        """Remember a fact."""
        self._facts[fact] = None
        if len(self._facts) > _CAPACITY:
            self._facts.popitem(last=False)

    def forget(self, fact: Fact) -> None:
        """Forget a fact, if it is known."""
        self._facts.pop(fact, None)
