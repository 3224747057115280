"""Makes one HTTP exchange: sends a request, reads a bounded answer, and translates aiohttp's errors into HookErrors."""

import asyncio
import io
import ssl
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from metaloop.common.http.body import Body
from metaloop.hookgateway import steps
from metaloop.hookgateway.core.budgets import ByteBudget
from metaloop.hookgateway.core.content_coding import ACCEPTED
from metaloop.hookgateway.core.verdict import Answer
from metaloop.hookgateway.dial import AddressRefused
from metaloop.hookgateway.errors import AddressDenied, BodyTooLarge, ConnectFailed, ConnectionLost, Overloaded, TlsFailed
from metaloop.hookgateway.steps import current_steps

QUOTED_BYTES: Final = 16 * 1024
"""How much is read of an answer whose body is only quoted in an error."""

SENT_AT_ONCE_BYTES: Final = 2**20
"""Up to this size a request is kept as one piece, and written to the socket at once."""

JOINED_AT_ONCE_BYTES: Final = 8 * 2**20
"""The body of a larger answer is joined in a thread: the interpreter lets others go on meanwhile."""

EVERY_REQUEST: Final = {"Content-Type": "application/json", "Accept-Encoding": ACCEPTED, "User-Agent": "metaloop-hookgateway"}
"""The headers of all requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a webhook."""

    url: URL
    headers: Mapping[str, str]
    """In addition to those of all requests."""

    body: Body


class InParts(Payload):
    """A large body, written part by part, so that other calls run in between. It has a length."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        super().__init__(parts)
        self._parts = tuple(parts)
        self._size = sum(map(len, self._parts))

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the body, as fast as the webhook takes it."""
        for part in self._parts:
            await writer.write(part)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The body as text."""
        return b"".join(self._parts).decode(encoding, errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How many bytes of answers may be in memory: of one answer, and of all unfinished ones together."""

    max_bytes: int
    unfinished: ByteBudget


async def answer_to(request: Request, session: aiohttp.ClientSession, *, tls: ssl.SSLContext | None, bounds: Bounds) -> Answer:
    """The answer to this request, unchecked.

    Its body is complete only for a 200. Raises the HookError of what failed.
    """
    with _translated_errors(f"{request.url.host}:{request.url.port}"):
        response = await session.post(
            request.url,
            data=_payload_of(request.body),
            headers={**EVERY_REQUEST, **request.headers},
            allow_redirects=False,
            ssl=True if tls is None else tls,
        )
        current_steps.get().mark(steps.FIRST_BYTE)
        try:
            content = await _body(response, bounds) if response.status == 200 else await _beginning(response)
        finally:
            response.close()  # has no effect if the body was read to its end: the connection is back in the pool
        current_steps.get().mark(steps.BODY_DONE)
        return _answer(response, content)


def _payload_of(body: Body) -> bytes | io.BytesIO | InParts:
    """A large body is written in parts, so that other calls run in between."""
    if not isinstance(body, bytes):
        return InParts(body)
    return body if len(body) <= SENT_AT_ONCE_BYTES else io.BytesIO(body)


async def _body(response: aiohttp.ClientResponse, bounds: Bounds) -> bytes:
    """The complete body. Bytes are counted as they come; the announced length only serves to give up sooner."""
    if (response.content_length or 0) > bounds.max_bytes:
        raise BodyTooLarge(f"webhook announced {response.content_length} bytes; the limit is {bounds.max_bytes}")
    parts: list[bytes] = []
    held = 0
    try:
        while part := await response.content.readany():
            if not bounds.unfinished.try_reserve(len(part)):
                raise Overloaded(f"the gateway holds {bounds.unfinished.used} bytes of unfinished answers already")
            held += len(part)
            parts.append(part)
            if held > bounds.max_bytes:
                raise BodyTooLarge(f"webhook answered with more than {bounds.max_bytes} bytes")
    finally:
        bounds.unfinished.release(held)
    return b"".join(parts) if held <= JOINED_AT_ONCE_BYTES else await asyncio.to_thread(b"".join, parts)


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    content = b""
    while len(content) < QUOTED_BYTES and (part := await response.content.readany()):
        content += part
    return content


def _answer(response: aiohttp.ClientResponse, content: bytes) -> Answer:
    headers = response.headers
    return Answer(
        status=response.status,
        body=content,
        coding=headers.get("Content-Encoding", ""),
        etag=headers.get("ETag", ""),
        retry_after=headers.get("Retry-After", "").strip(),
    )


@contextmanager
def _translated_errors(where: str) -> Iterator[None]:
    """A block whose aiohttp errors become HookErrors. The messages of aiohttp's own may hold the URL with its query."""
    try:
        yield
    except aiohttp.ClientConnectorDNSError as error:
        raise ConnectFailed(f"the name of {where} does not resolve: {error.os_error.strerror or 'no answer'}") from error
    except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientConnectorSSLError) as error:
        raise TlsFailed(f"no trusted TLS connection to {where}: {error}") from error
    except aiohttp.ClientConnectorError as error:
        raise _without_connection(error, where) from error
    except ssl.SSLError as error:
        raise TlsFailed(f"{where} ended the TLS connection: {error.reason}") from error
    except aiohttp.ClientResponseError as error:
        raise ConnectionLost(f"{where} did not answer in HTTP: {error.message}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionLost(f"{where} closed the connection before the end of its answer: {error}") from error


def _without_connection(error: aiohttp.ClientConnectorError, where: str) -> AddressDenied | TlsFailed | ConnectFailed:
    cause = error.os_error
    if isinstance(cause, AddressRefused):
        return AddressDenied(f"no webhook is called at the address of {where}: {cause}")
    if current_steps.get().last == steps.TLS_START:
        return TlsFailed(f"{where} broke off the TLS handshake: {cause}")
    return ConnectFailed(f"no connection to {where}: {cause}")
