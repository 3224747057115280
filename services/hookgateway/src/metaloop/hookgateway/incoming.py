"""The request of one call as it comes in: its body, and what its caller says of its lease while the call goes on."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from starlette.types import Receive

from metaloop.common.hooks.call import LONGEST_LINE_BYTES, length_from_wire, renewed_from_wire
from metaloop.common.http.body import Body
from metaloop.hookgateway.errors import CallerLeft, LeaseEnded, MalformedCall, RequestTooLarge

T = TypeVar("T")

_JOINED_BYTES: Final = 2**20
"""A larger body stays in the frames in which it came: to join it would hold up other calls."""


@dataclass(frozen=True, slots=True)
class LeasedBody:
    """The body of a call, and how many seconds the lease of its caller lasts; None without a lease."""

    body: Body
    seconds: float | None


class IncomingCall:
    """Reads a request by ASGI's `receive`. A body of more than `limit` bytes is refused."""

    def __init__(self, receive: Receive, *, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._read = bytearray()
        """What was received, and not returned yet."""
        self._is_complete = False

    async def body(self) -> bytes:
        """The body of a call without a lease. Raises CallerLeft and RequestTooLarge."""
        while not self._is_complete:
            await self._read_more()
            self._check_length(len(self._read))
        return self._taken(len(self._read))

    async def leased_body(self) -> LeasedBody:
        """The body of a call under a lease. Raises CallerLeft, RequestTooLarge and MalformedCall."""
        frames, size = list[bytes](), 0
        while length := _parsed(length_from_wire, await self._line()):
            size += length
            self._check_length(size)
            while len(self._read) < length:
                await self._read_more()
            frames.append(self._taken(length))
        body = tuple(frames) if size > _JOINED_BYTES else b"".join(frames)
        return LeasedBody(body, _parsed(renewed_from_wire, await self._line()))

    async def end(self, lease_seconds: float | None) -> CallerLeft | LeaseEnded:
        """Why the call has to end, once it has: its caller left, or its lease was not renewed in time.

        None is a call without a lease. Raises MalformedCall.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(lease_seconds) as limit:
                while True:
                    for seconds in self._renewals():
                        limit.reschedule(loop.time() + seconds)
                    message = await self._receive()
                    if message["type"] != "http.request":
                        return CallerLeft()
                    self._read += message["body"]
        except TimeoutError:
            return LeaseEnded("ended: the caller did not renew its lease")

    def _renewals(self) -> Iterator[float]:
        while (line := self._taken_line()) is not None:
            yield _parsed(renewed_from_wire, line)

    async def _line(self) -> bytes:
        while (line := self._taken_line()) is None:
            await self._read_more()
        return line

    async def _read_more(self) -> None:
        if self._is_complete:
            raise MalformedCall("the request ends before its body does")
        message = await self._receive()
        if message["type"] != "http.request":
            raise CallerLeft
        self._read += message["body"]
        self._is_complete = not message.get("more_body", False)

    def _taken_line(self) -> bytes | None:
        """The next line; None where its end has not come yet. Raises MalformedCall for one that is too long."""
        end = self._read.find(b"\n", 0, LONGEST_LINE_BYTES)
        if end < 0:
            if len(self._read) >= LONGEST_LINE_BYTES:
                raise MalformedCall("a line about the lease is too long")
            return None
        line = self._taken(end)
        del self._read[:1]
        return line

    def _taken(self, length: int) -> bytes:
        taken = bytes(self._read[:length])
        del self._read[:length]
        return taken

    def _check_length(self, length: int) -> None:
        if length > self._limit:
            raise RequestTooLarge(f"the request is longer than {self._limit} bytes")


def _parsed(parse: Callable[[bytes], T], line: bytes) -> T:
    try:
        return parse(line)
    except ValueError as problem:
        raise MalformedCall(str(problem)) from problem
