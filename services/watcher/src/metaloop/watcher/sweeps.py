"""Marks many units of work without holding up the event loop: some at once, the others in turns of the loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from metaloop.common.job import JobKey

KEYS_PER_TURN: Final = 500
"""How many keys are marked before others get their turn: some milliseconds of work."""


class Sweeps:
    """The units of work that are still to be marked, in the order in which they came."""

    def __init__(self, mark: Callable[[JobKey, str], None]) -> None:
        self._mark = mark
        self._left: deque[Iterator[tuple[JobKey, str]]] = deque()
        """What is left of each sweep that did not fit into one turn. No iterator is known to be exhausted."""

    def add(self, keys: Iterable[JobKey], reason: str) -> None:
        """Mark all keys for this reason: the first at once, the others soon."""
        left = ((key, reason) for key in keys)
        if self._left or not self._take_turn(left):
            self._left.append(left)
            if len(self._left) == 1:
                asyncio.get_running_loop().call_soon(self._continue)

    def _continue(self) -> None:
        if self._take_turn(self._left[0]):
            self._left.popleft()
        if self._left:
            asyncio.get_running_loop().call_soon(self._continue)

    def _take_turn(self, left: Iterator[tuple[JobKey, str]]) -> bool:
        """Mark the next keys of a sweep; whether that were all."""
        marked = 0
        for key, reason in islice(left, KEYS_PER_TURN):
            self._mark(key, reason)
            marked += 1
        return marked < KEYS_PER_TURN
