"""Acts on many units of work without holding up the event loop: on some at once, on the others in turns of the loop."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

from metaloop.common.job import JobKey

KEYS_PER_TURN: Final = 500
"""How many keys are acted on before others get their turn: some milliseconds of work."""

Act: TypeAlias = Callable[[JobKey], None]


class Sweeps:
    """The units of work that are still to be acted on, in the order in which they came."""

    def __init__(self) -> None:
        self._left: deque[_Sweep] = deque()
        """What is left of each sweep that did not fit into one turn. No iterator is known to be exhausted."""

    def add(self, keys: Iterable[JobKey], act: Act) -> None:
        """Act on all keys: on the first at once, on the others soon, but on none before those of earlier calls."""
        left = _Sweep(iter(keys), act)
        if self._left or not _take_turn(left):
            self._left.append(left)
            if len(self._left) == 1:
                asyncio.get_running_loop().call_soon(self._continue)

    def _continue(self) -> None:
        if _take_turn(self._left[0]):
            self._left.popleft()
        if self._left:
            asyncio.get_running_loop().call_soon(self._continue)


class _Sweep(NamedTuple):
    """The keys that are left, and what to do with each."""

    keys: Iterator[JobKey]
    act: Act


def _take_turn(sweep: _Sweep) -> bool:
    """Act on the next keys of a sweep; whether these were all."""
    count = 0
    for key in islice(sweep.keys, KEYS_PER_TURN):
        sweep.act(key)
        count += 1
    return count < KEYS_PER_TURN
