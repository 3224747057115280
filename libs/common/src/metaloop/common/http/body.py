"""The body of a request: bytes, or pieces that are made while it is sent."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, TypeAlias

Body: TypeAlias = bytes | Iterable[bytes]
"""A large body is an iterable of its pieces, so that it is never in memory as a whole."""

Follow: TypeAlias = Callable[[Callable[[bytes], None]], AbstractContextManager[None]]
"""Makes a block in which more may be sent, by the function that it is given."""


@dataclass(frozen=True, slots=True)
class OpenBody:
    """A body that goes on until its answer is there: more follows its beginning while the answer is awaited."""

    beginning: Body
    follow: Follow


_BLOCK_BYTES: Final = 64 * 1024
END: Final = b"0\r\n\r\n"
"""What ends a body in chunks."""


def whole(body: Body) -> bytes:
    """The body as one piece."""
    return body if isinstance(body, bytes) else b"".join(body)


def chunks_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """A whole body in the chunks of HTTP's chunked coding, which need no length in advance (RFC 9112, 7.1)."""
    yield from open_chunks_of(pieces)
    yield END


def chunk(piece: bytes) -> bytes:
    """One chunk. The piece is not empty: that would end the body."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def open_chunks_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces in chunks, without an end."""
    return map(chunk, blocks_of(pieces))


def blocks_of(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces, joined to blocks of at least 64 KiB each; the last one may be smaller. None is empty."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _BLOCK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    if size:
        yield b"".join(waiting)
