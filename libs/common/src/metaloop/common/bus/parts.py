"""Requests whose replies may be larger than a message: the asker pulls such a one part by part.

The answer to the request is then a ticket, which says where the parts are asked for and how many there are. Pulling, rather than
sending all parts at once, keeps a large observation from crowding everything else out of both sides' buffers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from metaloop.common.bus.connect import Bus, Message
from metaloop.common.errors import Unavailable
from metaloop.common.json import dumps, loads

Reply = TypeVar("Reply")

_MARK = b"\x00parts"
"""What a ticket begins with, and JSON never does."""
_PART_BYTES = 512 * 1024
_HEADROOM_BYTES = 4096
_KEEP_SECONDS = 15.0
ANSWER_SECONDS = 2.0
"""For a reply, and for each part of one."""


def always() -> bool:
    """Of a reply that nobody else could give meanwhile."""
    return True


@asynccontextmanager
async def replying(
    bus: Bus, subject: str, handler: Callable[[bytes], bytes], *, stands: Callable[[], bool] = always
) -> AsyncIterator[None]:
    """Answers the requests at `subject` with what `handler` returns, of any size, for the length of the block.

    The rest of a large reply is only handed out while what was said still `stands`.
    """
    replies = LargeReplies(bus, stands=stands)

    async def answer(message: Message) -> None:
        await bus.publish(message.reply, replies.fit(handler(message.data)))

    async with replies.serving(), bus.listening(subject, answer):
        yield


async def ask(bus: Bus, subject: str, request: bytes, *, read: Callable[[bytes], Reply]) -> Reply:
    """What `read` makes of the whole reply to `request`; `Unavailable` where nobody answered in time, or it can't be read."""
    answer = await bus.request(subject, request, timeout_seconds=ANSWER_SECONDS)
    wire = await _whole(bus, answer) if answer.startswith(_MARK) else answer
    try:
        return read(wire)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"a reply from {subject} that can't be read: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Where a large reply waits to be pulled."""

    subject: str
    parts: int

    def to_bytes(self) -> bytes:
        """Its wire form: the mark, then JSON."""
        return _MARK + dumps([self.subject, self.parts])

    @classmethod
    def from_bytes(cls, wire: bytes) -> "Ticket":
        """The ticket of a wire form."""
        subject, parts = loads(wire[len(_MARK) :])
        return cls(subject=subject, parts=parts)


class LargeReplies:
    """The replying side: keeps what is too large for one message until it was pulled, or for 15 seconds."""

    def __init__(self, bus: Bus, *, stands: Callable[[], bool]) -> None:
        self._bus = bus
        self._stands = stands
        self._inbox = bus.new_inbox()
        self._tokens = 0
        self._kept: dict[str, list[bytes]] = {}

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Hands out parts for the length of the block."""
        return self._bus.listening(f"{self._inbox}.*.*", self._hand_out)

    def fit(self, body: bytes) -> bytes:
        """What to answer with: `body` itself, or a ticket for it."""
        largest = self._bus.max_payload - _HEADROOM_BYTES
        if len(body) <= largest:
            return body
        size = min(largest, _PART_BYTES)
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        self._tokens += 1
        token = str(self._tokens)
        self._kept[token] = parts
        asyncio.get_running_loop().call_later(_KEEP_SECONDS, self._kept.pop, token, None)
        return Ticket(subject=f"{self._inbox}.{token}", parts=len(parts)).to_bytes()

    async def _hand_out(self, message: Message) -> None:
        _, token, number = message.subject.rsplit(".", 2)
        parts = self._kept.get(token)
        if parts is None or not message.reply or not self._stands():
            return  # too late: the asker gives up by itself
        await self._bus.publish(message.reply, parts[int(number)])
        if int(number) == len(parts) - 1:
            del self._kept[token]


async def _whole(bus: Bus, answer: bytes) -> bytes:
    """The whole of a reply whose ticket came as `answer`; `Unavailable` where its parts can't be had."""
    ticket = Ticket.from_bytes(answer)
    parts = [await bus.request(f"{ticket.subject}.{number}", b"", timeout_seconds=ANSWER_SECONDS) for number in range(ticket.parts)]
    return b"".join(parts)
