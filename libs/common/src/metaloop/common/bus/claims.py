"""A worker asks for a lease and an observation, the watcher answers."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TypeAlias

from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import ClaimRequest, claim_subject
from metaloop.common.bus.parts import always, ask, replying
from metaloop.common.observation import ClaimReply, Granted, reply_from_bytes

ClaimHandler: TypeAlias = Callable[[ClaimRequest], bytes]


def serving_claims(bus: Bus, shard: str, *, handler: ClaimHandler, leads: Callable[[], bool] = always) -> AbstractAsyncContextManager[None]:
    """Answers the claims of a shard with what `handler` returns, of any size, for the length of the block.

    A grant counts when its last part was handed out, so each part is a word that only who leads the shard may say.
    """
    return replying(bus, claim_subject(shard), lambda wire: handler(ClaimRequest.from_bytes(wire)), stands=leads)


async def claim(bus: Bus, shard: str, request: ClaimRequest) -> ClaimReply:
    """The watcher's reply; `Unavailable` where no watcher answered in time."""
    reply = await ask(bus, claim_subject(shard), request.to_bytes(), read=reply_from_bytes)
    return replace(reply, shard=shard) if isinstance(reply, Granted) else reply
