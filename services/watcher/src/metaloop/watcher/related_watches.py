"""Which related resources are watched: those with subscribers, and for a while those that had some."""

import asyncio
import math

from metaloop.watcher.core.subscriptions import RelatedSubscriptions
from metaloop.watcher.core.watch import Watch, WatchId
from metaloop.watcher.served import Served


class RelatedWatches:
    """The watches of related resources."""

    def __init__(self, subscriptions: RelatedSubscriptions, served: Served, *, grace_seconds: float, changed: asyncio.Event) -> None:
        self._subscriptions = subscriptions
        self._served = served
        self._grace_seconds = grace_seconds
        """How long a watch goes on without subscribers: a parent may subscribe again after its hook's next answer."""
        self._changed = changed
        """Set when a watch is no longer needed."""
        self._until: dict[WatchId, float] = {}
        """When each watch ends: never, while anybody is subscribed to it."""

    def needed(self) -> list[Watch]:
        """The watches of all served resources that a parent is subscribed to, or was a moment ago."""
        loop, subscribed = asyncio.get_running_loop(), self._subscriptions.watches
        now = loop.time()
        for watch in subscribed:
            self._until[watch] = math.inf
        for watch, until in tuple(self._until.items()):
            if watch not in subscribed and math.isinf(until):
                self._until[watch] = now + self._grace_seconds
                loop.call_later(self._grace_seconds, self._changed.set)
            elif until <= now:
                del self._until[watch]
        served = self._served.resources
        return [Watch(served[watch.resource], watch.scope) for watch in self._until if watch.resource in served]
