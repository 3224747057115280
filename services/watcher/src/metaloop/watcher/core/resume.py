"""How long to wait before a watch is opened again, by how the last one ended.

Most ends are everyday life, and waiting would only make us late: the server ends watches in bursts, forgets old versions, loses a
connection. So the first end of a kind costs nothing or next to nothing. But ends that follow one another without any progress between
them are a reason to be patient, and ever more so: no sequence of them may become a hot loop.
"""

from dataclasses import dataclass
from enum import Enum

_FIRST_SECONDS = 0.1


class Ending(Enum):
    """How a watch, or the list before it, came to its end."""

    CLEAN = "clean"
    """The server ended it in good order."""
    EXPIRED = "expired"
    """The version to resume from is from too long ago: a list comes next."""
    UNREADABLE = "unreadable"
    """A line was garbled."""
    BROKEN = "broken"
    """The connection broke, was silent for too long, or the server has troubles of its own."""
    REFUSED = "refused"
    """We may not watch this resource, or it isn't there."""


_FREE = {Ending.CLEAN: 3, Ending.EXPIRED: 1, Ending.UNREADABLE: 1, Ending.BROKEN: 0, Ending.REFUSED: 0}
"""How many fruitless ends in a row are followed by another try at once."""
_LONGEST_SECONDS = {Ending.BROKEN: 5.0}
"""To ask a server that is away costs nobody much, and its return should be noticed soon."""
_LONGEST_OTHERWISE = 30.0
_NEWS = {Ending.EXPIRED, Ending.REFUSED}
"""These tell that a server is there, which may be news: after an outage most watches have expired, and custom resources are served a moment later. So
the first of a row of them is waited out for this long at most, the next for twice as long, and so on."""
_FIRST_NEWS_SECONDS = 1.0


@dataclass(slots=True)
class Patience:
    """How often in a row it was for nothing."""

    fruitless: int = 0
    _last: Ending = Ending.CLEAN
    _alike: int = 0
    """How many of those ended as the last one did."""

    def after(self, ending: Ending, *, was_fruitful: bool) -> float:
        """The seconds to wait; `was_fruitful` says whether the watch told anything new, or at least lasted."""
        self.fruitless = 1 if was_fruitful else min(self.fruitless + 1, 100)
        self._last, self._alike = ending, min(self._alike + 1, 100) if ending is self._last and not was_fruitful else 1
        beyond = self.fruitless - _FREE[ending]
        if beyond <= 0:
            return 0.0
        longest = _LONGEST_SECONDS.get(ending, _LONGEST_OTHERWISE)
        if ending in _NEWS:
            longest = min(longest, _FIRST_NEWS_SECONDS * 2 ** min(self._alike - 1, 20))
        return min(_FIRST_SECONDS * 2 ** min(beyond - 1, 20), longest)

    def forget(self) -> None:
        """Begin anew: there is reason to think that things have changed."""
        self.fruitless = 0
