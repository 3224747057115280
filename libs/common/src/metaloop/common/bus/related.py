"""A worker tells what its parent follows, the watcher answers with what that selects."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from metaloop.common.bus.connect import Bus, Message
from metaloop.common.bus.messages import RelatedRequest, related_subject
from metaloop.common.bus.parts import LargeReplies, whole
from metaloop.common.errors import Unavailable
from metaloop.common.json import loads
from metaloop.common.observation import CachedRelated, Related, related_from_wire

RelatedHandler: TypeAlias = Callable[[RelatedRequest], CachedRelated]

_TIMEOUT_SECONDS = 2.0


@asynccontextmanager
async def serving_related(bus: Bus, shard: str, *, handler: RelatedHandler) -> AsyncIterator[None]:
    """Answers the workers of a shard with what `handler` selects, of any size, for the length of the block."""
    replies = LargeReplies(bus)

    async def answer(message: Message) -> None:
        related = handler(RelatedRequest.from_bytes(message.data))
        await bus.publish(message.reply, replies.fit(related.to_bytes()))

    async with replies.serving(), bus.listening(related_subject(shard), answer):
        yield


async def ask_related(bus: Bus, shard: str, request: RelatedRequest) -> Related:
    """What the interests of `request` select; `Unavailable` where no watcher answered in time."""
    answer = await bus.request(related_subject(shard), request.to_bytes(), timeout_seconds=_TIMEOUT_SECONDS)
    wire = await whole(bus, answer)
    try:
        return related_from_wire(loads(wire))
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"a reply on related objects that can't be read: {error!r}") from error
