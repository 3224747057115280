"""Asks the watcher to follow what a parent's customize hook asked for."""

from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.bus.related import ask_related
from metaloop.common.observation import Related


class BusFollower:
    """The watchers of all shards, over the bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """Has the queries of `request` followed from now on; what they select. Raises Unavailable."""
        return await ask_related(self._bus, shard, request)
