"""Caches, queue and router of one watcher, connected."""

from collections.abc import Sequence

from metaloop.common.machine import monotonic
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.core.observer import Observer
from metaloop.watcher.core.running import RunningControllers
from metaloop.watcher.core.subscriptions import RelatedSubscriptions, ServedResources, Signal
from metaloop.watcher.ownership import Ownership
from metaloop.watcher.route import Router
from metaloop.watcher.workqueue import Clock, WorkQueue


class Routing:
    """The parts through which a change passes from its cache to the queue."""

    def __init__(  # noqa: PLR0913 - what the parts need to know of the watcher
        self,
        *,
        shard: str,
        limits: Limits,
        served: ServedResources,
        changed: Signal,
        namespaces: Sequence[str] = (),
        clock: Clock = monotonic,
    ) -> None:
        self.caches = Caches(namespaces=namespaces)
        self.subscriptions = RelatedSubscriptions(self.caches, served=served, needs_changed=changed)
        self.running = RunningControllers(self.caches)
        self.observer = Observer(self.running, self.caches, subscriptions=self.subscriptions)
        self.queue = WorkQueue(shard=shard, cache=self.caches, is_behind=self.observer.is_behind, limits=limits, clock=clock)
        self.ownership = Ownership(self.queue)
        self.router = Router(self.queue, self.caches, running=self.running, subscriptions=self.subscriptions, ownership=self.ownership)
