"""Requests and replies that may be larger than a message: the asker pulls a large reply part by part.

The answer to the request is then a ticket: it says where to ask for the parts, and how many there are. If all parts
were sent at once, a large observation would leave no room for anything else in both sides' buffers.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from metaloop.common.bus.links import ANSWER_SECONDS, Leads
from metaloop.common.bus.nats.chunks import ChunkJoiner, chunks_of
from metaloop.common.bus.nats.connection import Connection, Message
from metaloop.common.errors import Unavailable
from metaloop.common.json import dumps, loads

Reply_co = TypeVar("Reply_co", covariant=True)
Answerer: TypeAlias = Callable[[bytes], Sequence[bytes]]
"""Makes the reply to a request, the pieces of one message."""

_MARK = b"\x00parts"
"""A ticket begins with it; no JSON does."""
_PART_BYTES = 256 * 1024
"""Some milliseconds pass until a part of this size is parsed. Other work goes on in between."""
_ASKED_AHEAD = 3
"""How many parts are on their way at once."""
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
        reply = handler(request) if request is not None else ()
        if reply:
            await connection.publish(message.reply, replies.fit(reply))

    async with replies.serving(), connection.listening(subject, answer):
        yield


class PartReader(Protocol[Reply_co]):
    """Reads a reply, whole or from its parts. Raises KeyError, TypeError or ValueError where it can't be read."""

    def whole(self, wire: bytes) -> Reply_co:
        """The reply that came as one message."""
        ...

    def feed(self, part: bytes) -> None:
        """Read the next part."""
        ...

    def reply(self) -> Reply_co:
        """The reply, which is complete."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a reply of any size. Its body may be of any size, too."""

    subject: str
    body: bytes


async def ask(connection: Connection, request: Request, *, reading: PartReader[Reply_co]) -> Reply_co:
    """What `reading` makes of the reply. It is fed the parts of a large one as they arrive.

    Raises NobodyThere, or Unavailable where it doesn't come in time or can't be read.
    """
    *earlier, last = chunks_of(request.body, max_payload=connection.max_payload)
    for chunk in earlier:
        await connection.publish(request.subject, chunk)
    answer = await connection.request(request.subject, last, timeout_seconds=ANSWER_SECONDS)
    try:
        if answer.startswith(_MARK):
            await _pull(connection, Ticket.from_bytes(answer), reading)
            return reading.reply()
        return reading.whole(answer)
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
        self._kept: dict[str, list[list[bytes]]] = {}
        """The parts of each reply. Each is joined only when it is handed out."""

    def serving(self) -> AbstractAsyncContextManager[None]:
        """Hands out parts for the length of the block."""
        return self._connection.listening(f"{self._inbox}.*.*", self._hand_out)

    def fit(self, pieces: Sequence[bytes]) -> bytes:
        """What to answer with: the message that is made of `pieces`, or a ticket for it."""
        largest = self._connection.max_payload - _HEADROOM_BYTES
        if len(pieces) == 1 and len(pieces[0]) <= largest:
            return pieces[0]
        parts = [*_parts_of(pieces, size=min(largest, _PART_BYTES))]
        if len(parts) == 1:
            return b"".join(parts[0])
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
        await self._connection.publish(message.reply, b"".join(parts[int(number)]))
        if int(number) == len(parts) - 1:
            del self._kept[token]


def _parts_of(pieces: Sequence[bytes], *, size: int) -> Iterator[list[bytes]]:
    """The pieces in groups of `size` bytes, where only those that cross a border are cut."""
    part: list[bytes] = []
    room = size
    for piece in pieces:
        rest = piece
        while len(rest) > room:
            yield [*part, rest[:room]]
            part, rest, room = [], rest[room:], size
        part.append(rest)
        room -= len(rest)
    yield part


async def _pull(connection: Connection, ticket: Ticket, reading: PartReader[object]) -> None:
    """Feed all parts to `reading`. Raises Unavailable where a part doesn't come in time, and what `reading` raises."""

    async def part(number: int) -> bytes:
        return await connection.request(f"{ticket.subject}.{number}", b"", timeout_seconds=ANSWER_SECONDS)

    try:
        async with asyncio.TaskGroup() as tasks:
            coming: deque[asyncio.Task[bytes]] = deque()
            for number in range(ticket.parts):
                coming.append(tasks.create_task(part(number)))
                if len(coming) == _ASKED_AHEAD:
                    reading.feed(await coming.popleft())
                    await asyncio.sleep(0)  # the next one may be here already, and other work goes first
            for last in coming:
                reading.feed(await last)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
