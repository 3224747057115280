"""What a server answered, and how it is put together from what the parser finds."""

from collections.abc import Callable
from typing import Final, NamedTuple

from httptools import HttpResponseParser

_INTERIM: Final = range(100, 200)
_FRAMES: Final = frozenset({b"content-length", b"transfer-encoding"})


class Answer(NamedTuple):
    """An answer, whole."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    """In the order and spelling in which they came."""
    body: bytes

    def header(self, name: str) -> str:
        """The first value under a name, in whatever case it came; empty where there is none."""
        wanted = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == wanted), "")


class Reading:
    """Reads the answers of one connection, one after another: httptools' callbacks, of which `on_answer` hears the result.

    Its own methods may raise `httptools.HttpParserError` and `httptools.HttpParserUpgrade`: what came is no answer to us.
    """

    def __init__(self, on_answer: Callable[[Answer], None]) -> None:
        self._parser = HttpResponseParser(self)
        self._on_answer = on_answer
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._has_all_headers = False
        self._is_within = False

    @property
    def is_within(self) -> bool:
        """Whether the beginning of an answer was read, and not yet its end."""
        return self._is_within

    @property
    def may_be_followed(self) -> bool:
        """Whether the server will answer another request on the connection, by what it said last."""
        return self._parser.should_keep_alive()

    def take(self, data: bytes) -> None:
        """Read on."""
        self._parser.feed_data(data)

    def take_end(self) -> bool:
        """Whether the end of the connection was the end of an answer: where nothing else tells its length, nothing else can be (RFC 9112, 6.3)."""
        if not self._has_all_headers or any(name.lower() in _FRAMES for name, _ in self._headers):
            return False
        self.on_message_complete()
        return True

    def on_message_begin(self) -> None:
        """Another answer begins."""
        self._headers, self._body, self._has_all_headers, self._is_within = [], [], False, True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One of its headers."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """All of its headers were there."""
        self._has_all_headers = True

    def on_body(self, part: bytes) -> None:
        """Some of its body."""
        self._body.append(part)

    def on_message_complete(self) -> None:
        """It is whole; one that only announces another is passed over."""
        self._is_within = False
        status = self._parser.get_status_code()
        if status in _INTERIM:
            self._has_all_headers = False  # those of the answer itself are still to come
        else:
            self._on_answer(Answer(status, tuple(self._headers), b"".join(self._body)))
