"""How long to wait before a watch is opened again, by how the last one ended.

Most ends are normal and waiting would only add latency: the server ends watches in bursts, forgets old versions, loses
a connection. So the first end of a kind costs little or nothing. Ends that follow one another without progress are
waited out for longer and longer: no sequence of them may become a hot loop.
"""

from dataclasses import dataclass
from enum import Enum

_FIRST_SECONDS = 0.1


class Ending(Enum):
    """How a watch, or the list before it, came to its end."""

    CLEAN = "clean"
    """The server ended it regularly."""
    EXPIRED = "expired"
    """The version to resume from is from too long ago: a list comes next."""
    UNREADABLE = "unreadable"
    """A line was garbled."""
    SILENT = "silent"
    """The server accepted it, and said nothing for too long. The connection may be dead; or nothing happened."""
    BROKEN = "broken"
    """The connection broke, or the server failed or did not answer."""
    REFUSED = "refused"
    """We may not watch this resource, or it isn't there."""


_FREE = {Ending.CLEAN: 3, Ending.EXPIRED: 1, Ending.UNREADABLE: 1, Ending.SILENT: 1, Ending.BROKEN: 0, Ending.REFUSED: 0}
"""How many fruitless ends in a row are followed by another try at once."""
_LONGEST_SECONDS = {Ending.BROKEN: 5.0, Ending.SILENT: 5.0}
"""Asking a server that is away is cheap, and its return should be noticed soon."""
_LONGEST_OTHERWISE = 30.0
_NEWS = {Ending.EXPIRED, Ending.REFUSED}
"""These show that a server answers, perhaps again: after an outage most watches have expired, and custom resources are
served a moment later. The first of a row of them is waited out for `_FIRST_NEWS_SECONDS` at most, the next for twice as
long, and so on."""
_FIRST_NEWS_SECONDS = 1.0


@dataclass(slots=True)
class WatchBackoff:
    """Counts the ends in a row that brought no progress."""

    fruitless_ends: int = 0
    _last: Ending = Ending.CLEAN
    _alike: int = 0
    """How many of those ended as the last one did."""

    def after(self, ending: Ending, *, made_progress: bool) -> float:
        """The seconds to wait. `made_progress`: whether the watch brought news, or at least lasted."""
        self.fruitless_ends = 1 if made_progress else min(self.fruitless_ends + 1, 100)
        self._last, self._alike = ending, min(self._alike + 1, 100) if ending is self._last and not made_progress else 1
        beyond = self.fruitless_ends - _FREE[ending]
        if beyond <= 0:
            return 0.0
        longest = _LONGEST_SECONDS.get(ending, _LONGEST_OTHERWISE)
        if ending in _NEWS:
            longest = min(longest, _FIRST_NEWS_SECONDS * 2 ** min(self._alike - 1, 20))
        return min(_FIRST_SECONDS * 2 ** min(beyond - 1, 20), longest)

    def reset(self) -> None:
        """Start over: something changed, so the next watch may succeed."""
        self.fruitless_ends = 0
