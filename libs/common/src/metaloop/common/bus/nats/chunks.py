"""Messages that may be larger than the server takes: the sender splits them, and the receiver joins them.

The chunks of a message are sent one after the other on one connection, and the server keeps their order. If one of them
is lost, the whole message is.
"""

from typing import Final

from metaloop.common.bus.nats.connection import Connection
from metaloop.common.json import dumps, loads
from metaloop.common.machine import unique_token

_MARK: Final = b"\x00chunk"
"""A chunk begins with it; no JSON does. Its head, a JSON array, ends with the line."""
_CHUNK_BYTES: Final = 512 * 1024
_HEADROOM_BYTES: Final = 4096
_UNFINISHED: Final = 256
"""How many messages may be incomplete at once. The oldest is dropped for another: some of its chunks were lost."""


def chunks_of(body: bytes, *, max_payload: int) -> list[bytes]:
    """What to send, in order: `body` itself if the server takes it, or else its chunks."""
    largest = max_payload - _HEADROOM_BYTES
    if len(body) <= largest:
        return [body]
    size, message = min(largest, _CHUNK_BYTES), unique_token()
    starts = range(0, len(body), size)
    return [_chunk(message, number, len(starts), body[start : start + size]) for number, start in enumerate(starts)]


def publish_soon(connection: Connection, subject: str, body: bytes) -> None:
    """Sends a message of any size with the next one, to a subject whose receiver joins chunks. Raises Unavailable."""
    for chunk in chunks_of(body, max_payload=connection.max_payload):
        connection.publish_soon(subject, chunk)


class ChunkJoiner:
    """The receiving side of one subject."""

    def __init__(self) -> None:
        self._unfinished: dict[str, list[bytes]] = {}

    def whole(self, wire: bytes) -> bytes | None:
        """The message that is complete with this. None while chunks of it are missing, and if one was lost."""
        if not wire.startswith(_MARK):
            return wire
        head, _, content = wire[len(_MARK) :].partition(b"\n")
        message, number, count = loads(head)
        chunks = self._unfinished.pop(message, [])
        if number != len(chunks):
            return None
        chunks.append(content)
        if len(chunks) == count:
            return b"".join(chunks)
        self._keep(message, chunks)
        return None

    def _keep(self, message: str, chunks: list[bytes]) -> None:
        if len(self._unfinished) >= _UNFINISHED:
            del self._unfinished[next(iter(self._unfinished))]
        self._unfinished[message] = chunks


def _chunk(message: str, number: int, count: int, content: bytes) -> bytes:
    return b"%s%s\n%s" % (_MARK, dumps([message, number, count]), content)
