"""One connection to a server: one request at a time, and its answer before the next request is sent.

The difficult parts of HTTP and TLS are done by libraries: llhttp parses (through httptools), and the event loop
encrypts. A general client also does redirects, cookies, proxies, encodings and streams. Nothing here needs them, and
they cost several times as much as the exchange itself.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, cast

from httptools import HttpParserError, HttpParserUpgrade

from metaloop.common.http.answer import Answer, AnswerReader, joined
from metaloop.common.http.body import END, Follow, chunk

Permit: TypeAlias = Callable[[], None]
"""Called immediately before a request is sent, with nothing in between. What it raises prevents that."""


def always() -> None:
    """Permit every request."""


class NoAnswer(ConnectionError):
    """The connection ended before the answer was complete, or sent something else."""


class ClosedWhileIdle(NoAnswer):
    """An idle connection ended without any answer: the server may have closed it just as the request was sent."""


class Connection(asyncio.Protocol):
    """A protocol for the event loop. However the connection ends, `exchange` raises."""

    def __init__(self) -> None:
        self._reader = AnswerReader(self._answered)
        self._transport: asyncio.Transport | None = None
        self._expected: asyncio.Future[Answer | NoAnswer] | None = None
        self._has_received = False
        self._exchanges = 0
        # Asked once: before Python 3.12, each `get_running_loop` makes a system call.
        self._loop = asyncio.get_running_loop()
        self._may_write = asyncio.Event()
        """Cleared while the server reads slower than we write. Set when the connection ends."""
        self._may_write.set()
        self._is_sending = False
        """Whether the pieces of a request are being sent."""
        self._owed = b""
        """The end of the last body, which was left open until its answer came."""
        self._opened_at = self._loop.time()
        self._idle_since = 0.0
        """When its last answer was complete, by the event loop's clock."""

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and self._expected is None

    @property
    def idle_seconds(self) -> float:
        """How long it has not been used."""
        return self._loop.time() - self._idle_since

    @property
    def age_seconds(self) -> float:
        """How long ago it was opened."""
        return self._loop.time() - self._opened_at

    async def exchange(self, *request: bytes, rest: Iterable[bytes] = (), follow: Follow | None = None, permit: Permit = always) -> Answer:
        """Send a request, given in parts, and return its answer. The `rest` is made as fast as the server takes it.

        A body in chunks goes on with what is sent in the block of `follow`, until the answer is there. What is sent at
        the beginning of that block goes with the request; the end of the body goes with the next request.

        Raises NoAnswer, and what `permit` raises. The connection is closed if this fails or is cancelled.
        """
        if self._transport is None or self._expected is not None:
            raise AssertionError("exchange needs a usable connection")
        self._expected = self._loop.create_future()
        self._has_received = False
        end: Answer | NoAnswer = NoAnswer("cancelled")
        try:
            permit()
            if follow is None or rest:
                self._write(request)
                request = ()
            if rest:
                await self._send(rest, answered=self._expected.done)
            end = await (self._expected if follow is None else self._followed(self._expected, request, follow))
        finally:
            if isinstance(end, NoAnswer):
                self.cut()
        if isinstance(end, NoAnswer):
            raise end
        self._expected = None
        self._exchanges += 1
        self._idle_since = self._loop.time()
        return await joined(end) if end.parts else end

    def cut(self) -> None:
        """Close the connection at once. An orderly close would wait for the peer's TLS close_notify."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    async def _send(self, pieces: Iterable[bytes], *, answered: Callable[[], bool]) -> None:
        """Send the rest of a request. Ends where the server answers before it has read everything, or goes away."""
        self._is_sending = True
        for piece in pieces:
            await self._may_write.wait()
            if self._transport is None or answered():
                break
            self._transport.write(piece)
            await asyncio.sleep(0)  # others go first: making a piece takes time
        self._is_sending = False

    def _write(self, request: Sequence[bytes]) -> None:
        if self._transport is not None:
            self._transport.writelines((self._owed, *request) if self._owed else request)
            self._owed = b""

    async def _followed(self, expected: "asyncio.Future[Answer | NoAnswer]", request: Sequence[bytes], follow: Follow) -> Answer | NoAnswer:
        """The end of an exchange, while which more of its body may be sent."""
        waiting = [*request]

        def send(piece: bytes) -> None:
            if waiting:
                waiting.append(chunk(piece))
            elif self._transport is not None and not expected.done():
                self._transport.write(chunk(piece))

        with follow(send):
            if waiting:
                self._write(waiting)
                waiting.clear()
            end = await expected
        # A packet of its own would wake the server for nothing.
        self._owed = END
        return end

    def pause_writing(self) -> None:
        """Wait before more is written: the server is slow."""
        self._may_write.clear()

    def resume_writing(self) -> None:
        """Write on."""
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is established."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse what was received. Bytes that no request asked for close the connection."""
        if self._expected is None or self._expected.done():
            self.cut()
            return
        self._has_received = True
        try:
            self._reader.feed(data)
        except (HttpParserError, HttpParserUpgrade) as problem:
            self._failed(NoAnswer(f"not an answer in HTTP: {problem or type(problem).__name__}"))
        if self._expected.done() and self._reader.is_partial:
            self.cut()  # a second answer began, which no request asked for

    def eof_received(self) -> None:
        """The server sends nothing more: an idle connection is useless then."""
        if self._expected is None:
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        self._transport = None
        self._may_write.set()
        if self._expected is None or self._expected.done():
            return
        if exc is None and self._reader.feed_eof():
            return
        was_idle = self._exchanges and not self._has_received
        detail = f": {exc}" if exc else ""
        self._failed(
            ClosedWhileIdle(f"closed while idle{detail}") if was_idle else NoAnswer(f"closed before the end of the answer{detail}")
        )

    def _answered(self, answer: Answer) -> None:
        if self._expected is None or self._expected.done():
            self.cut()  # a second answer to one request: later answers could not be matched to requests
            return
        self._expected.set_result(answer)
        self._may_write.set()
        if self._transport is None:
            return
        if self._is_sending or self._transport.get_write_buffer_size():
            # The server answered before it read the whole request. It may never read the rest, which would block the
            # next.
            self.cut()
        elif not self._reader.keeps_alive:
            self._transport.close()
            self._transport = None

    def _failed(self, problem: NoAnswer) -> None:
        self.cut()
        if self._expected is not None and not self._expected.done():
            self._expected.set_result(problem)
