"""One connection to a server: a request goes out, and its answer comes in, before the next request may go.

The parts in which HTTP and TLS are hard are others': llhttp reads (by httptools), the event loop encrypts. What a general client does beside that (redirects,
cookies, proxies, encodings, streams) nobody needs here, and costs several times as much as the exchange itself.
"""

import asyncio
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade

from metaloop.common.http.answer import Answer, Reading


class NoAnswer(ConnectionError):
    """The connection ended, or made no sense, before the answer was whole."""


class Unheard(NoAnswer):
    """A connection that had been idle ended before anything came back: its server may have closed it just when the request went out."""


class Connection(asyncio.Protocol):
    """As the event loop drives it. Who asks is told of every end by an exception of `exchange`."""

    def __init__(self) -> None:
        self._reading = Reading(self._answered)
        self._transport: asyncio.Transport | None = None
        self._expected: asyncio.Future[Answer | NoAnswer] | None = None
        self._has_heard = False
        self._exchanges = 0
        self.idle_since = 0.0
        """By the event loop's clock: when its last answer was whole."""

    @property
    def is_usable(self) -> bool:
        """Whether another request may be sent."""
        return self._transport is not None and self._expected is None

    async def exchange(self, *request: bytes) -> Answer:
        """The answer to a request of these parts. Whoever is cancelled here, or fails, leaves no connection behind. Raises NoAnswer."""
        if self._transport is None or self._expected is not None:
            raise AssertionError("only a usable connection is asked")
        loop = asyncio.get_running_loop()
        self._expected = loop.create_future()
        self._has_heard = False
        end: Answer | NoAnswer = NoAnswer("given up")
        try:
            self._transport.writelines(request)
            end = await self._expected
        finally:
            if isinstance(end, NoAnswer):
                self.cut()
        if isinstance(end, NoAnswer):
            raise end
        self._expected = None
        self._exchanges += 1
        self.idle_since = loop.time()
        return end

    def cut(self) -> None:
        """End it at once: with TLS, a polite end would wait for a last word."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The event loop connected us."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Some bytes came; those that nobody asked for end the connection."""
        if self._expected is None or self._expected.done():
            self.cut()
            return
        self._has_heard = True
        try:
            self._reading.take(data)
        except (HttpParserError, HttpParserUpgrade) as problem:
            self._failed(NoAnswer(f"not an answer in HTTP: {problem or type(problem).__name__}"))
        if self._expected.done() and self._reading.is_within:
            self.cut()  # the beginning of an answer that nobody asked for

    def eof_received(self) -> None:
        """The server sends no more; an idle connection is of no use then."""
        if self._expected is None:
            self.cut()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is over, whoever ended it."""
        self._transport = None
        if self._expected is None or self._expected.done():
            return
        if exc is None and self._reading.take_end():
            return
        unheard = self._exchanges and not self._has_heard
        said = f": {exc}" if exc else ""
        self._failed(Unheard(f"closed while idle{said}") if unheard else NoAnswer(f"closed before the end of the answer{said}"))

    def _answered(self, answer: Answer) -> None:
        if self._expected is None or self._expected.done():
            self.cut()  # a second answer to one request: whose would the next be?
            return
        self._expected.set_result(answer)
        if self._transport is None:
            return
        if self._transport.get_write_buffer_size():
            self.cut()  # who answers before it has read all may never read the rest, and the next request would wait behind it
        elif not self._reading.may_be_followed:
            self._transport.close()
            self._transport = None

    def _failed(self, problem: NoAnswer) -> None:
        self.cut()
        if self._expected is not None and not self._expected.done():
            self._expected.set_result(problem)
