"""A worker asks for a lease and an observation, the watcher answers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeAlias

from metaloop.common.bus.connect import Bus, Message
from metaloop.common.bus.messages import ClaimRequest, claim_subject
from metaloop.common.bus.parts import LargeReplies, whole
from metaloop.common.errors import Unavailable
from metaloop.common.observation import ClaimReply, Granted, reply_from_bytes

ClaimHandler: TypeAlias = Callable[[ClaimRequest], bytes]

_TIMEOUT_SECONDS = 2.0


@asynccontextmanager
async def serving_claims(bus: Bus, shard: str, *, handler: ClaimHandler) -> AsyncIterator[None]:
    """Answers the claims of a shard with what `handler` returns, of any size, for the length of the block."""
    replies = LargeReplies(bus)

    async def answer(message: Message) -> None:
        body = handler(ClaimRequest.from_bytes(message.data))
        await bus.publish(message.reply, replies.fit(body))

    async with replies.serving(), bus.listening(claim_subject(shard), answer):
        yield


async def claim(bus: Bus, shard: str, request: ClaimRequest) -> ClaimReply:
    """The watcher's reply; `Unavailable` where no watcher answered in time."""
    answer = await bus.request(claim_subject(shard), request.to_bytes(), timeout_seconds=_TIMEOUT_SECONDS)
    wire = await whole(bus, answer)
    try:
        reply = reply_from_bytes(wire)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"a claim reply that can't be read: {error!r}") from error
    return replace(reply, shard=shard) if isinstance(reply, Granted) else reply
