"""Which controllers a watcher serves, where several watchers share them."""

from dataclasses import dataclass
from zlib import crc32

from metaloop.common.job import ControllerId
from metaloop.common.objects.selector import Labels, Selector


@dataclass(frozen=True, slots=True)
class Shard:
    """The `index`th of `count` shards, counted from 0. Each controller is in exactly one, by its name alone."""

    index: int
    count: int

    def holds(self, controller: ControllerId) -> bool:
        """Whether a controller is in this shard."""
        return crc32(str(controller).encode()) % self.count == self.index


@dataclass(frozen=True, slots=True)
class Share:
    """The controllers of a shard that a label selector matches."""

    shard: Shard
    target: Selector

    @property
    def name(self) -> str:
        """The name of the share on the bus, which watchers of other shares use too."""
        return f"{self.shard.index}-{crc32(str(self.target).encode()):08x}" if self.target.requirements else str(self.shard.index)

    def holds(self, controller: ControllerId, labels: Labels) -> bool:
        """Whether a controller with these labels belongs to the share."""
        return self.target.matches(labels) and self.shard.holds(controller)
