"""Requests and replies that may be larger than a message: the asker pulls a large reply part by part.

The answer to the request is then a ticket: it says where to ask for the parts, and how many there are. If all parts
were sent at once, a large observation would leave no room for anything else in both sides' buffers.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from metaloop.common.bus.links import ANSWER_SECONDS, Leads
from metaloop.common.bus.nats.chunks import ChunkJoiner, chunks_of
from metaloop.common.bus.nats.connection import Connection, Message
from metaloop.common.errors import Unavailable
from metaloop.common.json import dumps, loads

Reply = TypeVar("Reply")
Answerer: TypeAlias = Callable[[Mapping[str, str] | None, bytes], bytes]
"""Makes the reply to a request, of its headers and its body."""

_MARK = b"\x00parts"
"""A ticket begins with it; no JSON does."""
_PART_BYTES = 512 * 1024
_HEADROOM_BYTES = 4096
_KEEP_SECONDS = 15.0


@asynccontextmanager
async def replying(connection: Connection, subject: str, handler: Answerer, *, leads: Leads) -> AsyncIterator[None]:
    """Answers the requests at `subject` with what `handler` returns, of any size, for the length of the block.

    A request for which it returns nothing gets no answer.
    Each part of a large reply is handed out only while the replier `leads`.
    """
    replies, requests = LargeReplies(connection, leads=leads), ChunkJoiner()

    async def answer(message: Message) -> None:
        request = requests.whole(message.data)
        reply = handler(message.headers, request) if request is not None else b""
        if reply:
            await connection.publish(message.reply, replies.fit(reply))

    async with replies.serving(), connection.listening(subject, answer):
        yield


def _ignore(_: bytes) -> None:
    """Look at nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a reply of any size. Its body may be of any size, too."""

    subject: str
    body: bytes
    headers: dict[str, str] | None = None


async def ask(
    connection: Connection, request: Request, *, read: Callable[[bytes], Reply], peek: Callable[[bytes], None] = _ignore
) -> Reply:
    """What `read` makes of the whole reply. `peek` is shown the beginning of it first, as soon as that has arrived.

    Raises NobodyThere, or Unavailable where it doesn't come in time or can't be read.
    """
    *earlier, last = chunks_of(request.body, max_payload=connection.max_payload)
    for chunk in earlier:
        await connection.publish(request.subject, chunk)
    answer = await connection.request(request.subject, last, timeout_seconds=ANSWER_SECONDS, headers=request.headers)
    if answer.startswith(_MARK):
        wire = await _whole(connection, answer, peek)
    else:
        peek(answer)
        wire = answer
    try:
        return read(wire)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"a reply from {request.subject} that can't be read: {error!r}") from error


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
    """The replying side. It keeps a reply that is too large for one message until it was pulled, or for 15 seconds."""

    def __init__(self, connection: Connection, *, leads: Leads) -> None:
        self._connection = connection
        self._leads = leads
        self._inbox = connection.new_inbox()
        self._tokens = 0
        self._kept: dict[str, list[bytes]] = {}

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Hands out parts for the length of the block."""
        return self._connection.listening(f"{self._inbox}.*.*", self._hand_out)

    def fit(self, body: bytes) -> bytes:
        """What to answer with: `body` itself, or a ticket for it."""
        largest = self._connection.max_payload - _HEADROOM_BYTES
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
        if parts is None or not message.reply or not self._leads():
            return  # too late: the asker gives up by itself
        await self._connection.publish(message.reply, parts[int(number)])
        if int(number) == len(parts) - 1:
            del self._kept[token]


async def _whole(connection: Connection, answer: bytes, peek: Callable[[bytes], None]) -> bytes:
    """The whole of a reply whose ticket came as `answer`. Raises Unavailable where a part doesn't come in time."""
    ticket = Ticket.from_bytes(answer)
    parts: list[bytes] = []
    for number in range(ticket.parts):
        parts.append(await connection.request(f"{ticket.subject}.{number}", b"", timeout_seconds=ANSWER_SECONDS))
        if number == 0:
            peek(parts[0])
    return b"".join(parts)
