"""Only one watcher serves a shard, also where no leader is elected: a second one waits, and says why.

Watchers of a shard tell one another their presence: when they begin, whenever they hear of one that should give way to
them, every few seconds, and after each reconnection. One that runs without leader election begins once it has heard for
a moment of nobody that it must give way to. It ends when it hears of one later: two that began on both sides of a
partition meet when that heals, and one that was stopped for long may find another in its place.

An elected leader gives way to nobody, since the Lease has chosen it; it only tells others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from metaloop.common.bus.links import Leads, WatcherLink
from metaloop.common.bus.messages import Presence, PresenceRank
from metaloop.common.errors import Unavailable
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within
from metaloop.watcher.errors import NotAlone

log = get_logger()

_HEARD_WITHIN_SECONDS = 0.3
"""So long after it asked, a watcher that begins has heard of the one that serves."""
_TOLD_EVERY_SECONDS = 3.0
"""How often a watcher tells its presence, and one that waits looks whether the other is gone."""


class ShardExclusivity:
    """Whether this watcher may serve its shard, as far as the other watchers of the shard say.

    `identity` differs from that of every other process. `leads` says whether it leads at this moment.
    """

    def __init__(self, link: WatcherLink, *, identity: str, is_elected: bool, leads: Leads) -> None:
        self._link = link
        self._leads = leads
        self._first_rank = PresenceRank.ELECTED if is_elected else PresenceRank.STARTING
        self._own = Presence(rank=self._first_rank, watcher=identity)
        self._preceding = ""
        """The other watcher that was heard last of those that this one gives way to."""
        self._refusal = ""
        """Why this watcher doesn't serve; empty while it does, or may yet."""
        self._news = asyncio.Event()
        """Set when this watcher has to tell of itself, or to give way."""

    def check_alone(self) -> None:
        """Return unless another watcher serves the shard in this one's place. Raises NotAlone."""
        if self._refusal:
            raise NotAlone(self._refusal)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve the shard for the length of the block, which begins once no other watcher does."""
        self._own = replace(self._own, rank=self._first_rank)
        with self._link.on_reconnect(self._news.set):
            async with self._link.on_presence(self._hear):
                if self._first_rank is PresenceRank.STARTING:
                    await self._begin()
                yield

    async def run(self) -> None:
        """Tell the others of this watcher, within `serving`. Raises NotAlone once it has to give way."""
        while True:
            await self._tell()
            await is_set_within(self._news, _TOLD_EVERY_SECONDS)
            self._news.clear()
            if self._preceding:
                self._refuse()
                self.check_alone()

    async def _begin(self) -> None:
        """Return once nobody was heard whom this watcher gives way to."""
        while not await self._is_alone():
            self._refuse()
            await asyncio.sleep(_TOLD_EVERY_SECONDS)
        self._refusal = ""
        self._own = replace(self._own, rank=PresenceRank.SERVING)
        await self._tell()

    async def _is_alone(self) -> bool:
        self._preceding = ""
        try:
            await self._link.check()  # whatever is told from now on is heard
            await self._link.announce_presence(self._own)
        except Unavailable:
            return False
        await asyncio.sleep(_HEARD_WITHIN_SECONDS)
        return not self._preceding

    def _hear(self, other: Presence) -> None:
        if other.watcher == self._own.watcher:
            return
        if other.precedes(self._own):
            self._preceding = other.watcher
            self._news.set()
        elif self._own.precedes(other):
            self._news.set()

    def _refuse(self) -> None:
        refusal = (
            f"the watcher {self._preceding} serves this shard: run only one for each shard, "
            "or all of them with METALOOP_LEADER_ELECTION=true"
        )
        if self._preceding and refusal != self._refusal:  # once, not with each look whether it is gone
            log.error("watcher.not_alone", **{fields.ERROR: refusal})
            self._refusal = refusal

    async def _tell(self) -> None:
        if self._leads():
            with suppress(Unavailable):
                await self._link.announce_presence(self._own)
