"""The body of a request: bytes, or pieces that are made while it is sent."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

Body: TypeAlias = bytes | Iterable[bytes]
"""A large body is an iterable of its pieces, so that it is never in memory as a whole."""

_CHUNK_BYTES: Final = 64 * 1024
_END: Final = b"0\r\n\r\n"


def whole(body: Body) -> bytes:
    """The body as one piece."""
    return body if isinstance(body, bytes) else b"".join(body)


def chunks_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces in the chunks of HTTP's chunked coding, which need no length in advance (RFC 9112, 7.1)."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _CHUNK_BYTES:
            yield _chunk(waiting, size)
            waiting, size = [], 0
    if size:
        yield _chunk(waiting, size)
    yield _END


def _chunk(pieces: list[bytes], size: int) -> bytes:
    return b"%x\r\n%s\r\n" % (size, b"".join(pieces))
