"""A server's answer, and the reader that assembles it from the parser's callbacks."""

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from httptools import HttpResponseParser

_INTERIM: Final = range(100, 200)
_LENGTH_HEADERS: Final = frozenset({b"content-length", b"transfer-encoding"})
LARGE_BYTES: Final = 8 * 2**20
"""The body of a larger answer is joined in a thread: the interpreter lets others go on meanwhile."""


class Answer(NamedTuple):
    """A complete answer."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    """In the order and spelling of the server."""
    body: bytes
    parts: tuple[bytes, ...] = ()
    """The body of a large answer as it came, until it is joined; `body` is empty then."""

    def header(self, name: str) -> str:
        """The first value of a header, whose name is compared without case; empty if there is none."""
        wanted = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == wanted), "")


async def joined(answer: Answer) -> Answer:
    """The answer with its whole body."""
    return answer if not answer.parts else Answer(answer.status, answer.headers, await asyncio.to_thread(b"".join, answer.parts))


class AnswerReader:
    """Reads the answers of one connection, one after another, and passes each to `on_answer`.

    Its `on_…` methods are httptools' callbacks.

    `feed` raises `httptools.HttpParserError` or `httptools.HttpParserUpgrade` for bytes that are not an answer.
    """

    def __init__(self, on_answer: Callable[[Answer], None]) -> None:
        self._parser = HttpResponseParser(self)
        self._on_answer = on_answer
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._has_all_headers = False
        self._is_partial = False

    @property
    def is_partial(self) -> bool:
        """Whether an answer has begun that is not complete yet."""
        return self._is_partial

    @property
    def keeps_alive(self) -> bool:
        """Whether the server keeps the connection open for another request, by its last answer."""
        return self._parser.should_keep_alive()

    def feed(self, data: bytes) -> None:
        """Parse the next bytes of the connection."""
        self._parser.feed_data(data)

    def feed_eof(self) -> bool:
        """Note the end of the connection; returns whether it completed an answer.

        It does so for an answer whose headers say nothing about its length (RFC 9112, 6.3).
        """
        if not self._has_all_headers or any(name.lower() in _LENGTH_HEADERS for name, _ in self._headers):
            return False
        self.on_message_complete()
        return True

    def on_message_begin(self) -> None:
        """An answer begins."""
        self._headers, self._body, self._has_all_headers, self._is_partial = [], [], False, True

    def on_header(self, name: bytes, value: bytes) -> None:
        """The next header."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The headers are complete."""
        self._has_all_headers = True

    def on_body(self, part: bytes) -> None:
        """The next part of the body."""
        self._body.append(part)

    def on_message_complete(self) -> None:
        """The answer is complete. Interim answers (1xx) are skipped."""
        self._is_partial = False
        status = self._parser.get_status_code()
        if status in _INTERIM:
            self._has_all_headers = False  # those of the final answer follow
        else:
            parts, self._body = tuple(self._body), []  # an idle connection keeps no copy
            is_large = sum(map(len, parts)) > LARGE_BYTES
            body, parts = (b"", parts) if is_large else (b"".join(parts), ())
            self._on_answer(Answer(status, tuple(self._headers), body, parts))
