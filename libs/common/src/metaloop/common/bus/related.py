"""A worker tells what its parent follows, the watcher answers with what that selects."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import RelatedRequest, related_subject
from metaloop.common.bus.parts import ask, replying
from metaloop.common.json import loads
from metaloop.common.observation import CachedRelated, Related, related_from_wire

RelatedHandler: TypeAlias = Callable[[RelatedRequest], CachedRelated]


def serving_related(bus: Bus, shard: str, *, handler: RelatedHandler) -> AbstractAsyncContextManager[None]:
    """Answers the workers of a shard with what `handler` selects, of any size, for the length of the block."""
    return replying(bus, related_subject(shard), lambda wire: handler(RelatedRequest.from_bytes(wire)).to_bytes())


async def ask_related(bus: Bus, shard: str, request: RelatedRequest) -> Related:
    """What the queries of `request` select; `Unavailable` where no watcher answered in time."""
    return await ask(bus, related_subject(shard), request.to_bytes(), read=_related_from_bytes)


def _related_from_bytes(wire: bytes) -> Related:
    return related_from_wire(loads(wire))
