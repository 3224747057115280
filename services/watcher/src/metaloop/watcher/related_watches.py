"""Which related resources are watched: those with subscribers, and for a while those that had some."""

import asyncio
import math

from metaloop.common.objects.resource import ResourceId
from metaloop.watcher.core.subscriptions import RelatedSubscriptions
from metaloop.watcher.core.watch import Watch
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
        self._until: dict[ResourceId, float] = {}
        """When the watch of each resource ends: never, while anybody is subscribed to it."""

    def needed(self) -> list[Watch]:
        """The watches of all served resources that a parent is subscribed to, or was a moment ago."""
        loop, subscribed = asyncio.get_running_loop(), self._subscriptions.resources
        now = loop.time()
        for resource in subscribed:
            self._until[resource] = math.inf
        for resource, until in tuple(self._until.items()):
            if resource not in subscribed and math.isinf(until):
                self._until[resource] = now + self._grace_seconds
                loop.call_later(self._grace_seconds, self._changed.set)
            elif until <= now:
                del self._until[resource]
        return [Watch(self._served.resources[resource]) for resource in self._until if resource in self._served.resources]
