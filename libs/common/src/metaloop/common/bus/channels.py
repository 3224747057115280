"""What else watcher and workers tell one another: renewals, reports, receipts, held leases."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.bus.connect import Bus, Message
from metaloop.common.bus.messages import HELD_IN_ANY_SHARD, Renewal, done_subject, held_subject, outcome_subject, renew_subject, shard_of
from metaloop.common.json import dumps, loads
from metaloop.common.report import SyncReport

_RENEW_TIMEOUT_SECONDS = 2.0

Lost: TypeAlias = Sequence[str]
"""Leases that their holder must not act upon any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherEars:
    """What the watcher does with what it hears."""

    on_renewal: Callable[[Renewal], Lost]
    on_report: Callable[[SyncReport], None]
    on_receipt: Callable[[str], None]


@asynccontextmanager
async def hearing_workers(bus: Bus, shard: str, ears: WatcherEars) -> AsyncIterator[None]:
    """Tells `ears` what the workers of a shard say, for the length of the block."""

    async def renewal(message: Message) -> None:
        lost = ears.on_renewal(Renewal.from_bytes(message.data))
        await bus.publish(message.reply, dumps(list(lost)))

    async def report(message: Message) -> None:
        ears.on_report(SyncReport.from_bytes(message.data))

    async def receipt(message: Message) -> None:
        ears.on_receipt(message.subject.rpartition(".")[2])

    async with AsyncExitStack() as stack:
        await stack.enter_async_context(bus.listening(renew_subject(shard), renewal))
        await stack.enter_async_context(bus.listening(outcome_subject(shard), report))
        await stack.enter_async_context(bus.listening(done_subject(shard, "*"), receipt))
        yield


async def held_leases(bus: Bus, shard: str, *, wait_seconds: float) -> list[Renewal]:
    """What workers say that they hold, as far as they answer in time."""
    answers: list[Renewal] = []
    inbox = bus.new_inbox()

    async def take(message: Message) -> None:
        if message.data:  # nothing in it: the server says that nobody is there
            answers.append(Renewal.from_bytes(message.data))

    async with bus.listening(inbox, take):
        await bus.publish(held_subject(shard), b"", reply=inbox)
        await asyncio.sleep(wait_seconds)
    return answers


@asynccontextmanager
async def answering_held(bus: Bus, answer: Callable[[str], Renewal]) -> AsyncIterator[None]:
    """Tells every watcher that starts what this worker holds in its shard, for the length of the block."""

    async def reply(message: Message) -> None:
        await bus.publish(message.reply, answer(shard_of(message.subject)).to_bytes())

    async with bus.listening(HELD_IN_ANY_SHARD, reply):
        yield


async def renew(bus: Bus, shard: str, renewal: Renewal) -> Lost:
    """The leases of `renewal` that are lost, the others being renewed; `Unavailable` where no watcher answered."""
    return loads(await bus.request(renew_subject(shard), renewal.to_bytes(), timeout_seconds=_RENEW_TIMEOUT_SECONDS))


async def report(bus: Bus, shard: str, finished: SyncReport) -> None:
    """Tell the watcher how a sync ended."""
    await bus.publish(outcome_subject(shard), finished.to_bytes())
