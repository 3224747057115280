"""Undoes the content coding of a body, with a limit on the bytes that come out."""

import zlib
from typing import Final

from metaloop.hookgateway.errors import BodyTooLarge, BodyUndecodable

ACCEPTED: Final = "gzip, deflate"
"""The value of Accept-Encoding in requests."""

_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""What zlib calls the container of each coding.

Two codings on top of each other are not offered, so a list of two is refused like any unknown coding.
"""

_PLAIN: Final = frozenset({"", "identity"})


def plain_bytes(body: bytes, *, coding: str, limit: int) -> bytes:
    """The body without its content coding.

    Raises BodyTooLarge when one byte more than the limit has come out, so a small body that would grow a thousandfold
    costs no more than any other. Raises BodyUndecodable for an unknown coding, and for a body that ends early or is not
    in its coding.
    """
    name = coding.strip().lower()
    if name in _PLAIN:
        return _within(body, limit=limit)
    if name not in _WINDOW_BITS:
        raise BodyUndecodable(f"webhook answered in the content coding {coding[:40]!r}; we accept {ACCEPTED}")
    return _inflated(body, name=name, limit=limit)


def plain_prefix(body: bytes, *, coding: str, limit: int) -> bytes:
    """The first plain bytes, as far as they can be decoded: half a body is better than none in an error's message."""
    window_bits = _WINDOW_BITS.get(coding.strip().lower())
    if window_bits is None:
        return body[:limit]
    try:
        return zlib.decompressobj(window_bits).decompress(body, limit)
    except zlib.error:
        return b""


def _within(body: bytes, *, limit: int) -> bytes:
    if len(body) > limit:
        raise BodyTooLarge(f"webhook answered with more than {limit} bytes")
    return body


def _inflated(body: bytes, *, name: str, limit: int) -> bytes:
    inflater = zlib.decompressobj(_WINDOW_BITS[name])
    try:
        plain = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise BodyUndecodable(f"webhook answered with a body that is not {name}: {error}") from error
    if len(plain) > limit:
        raise BodyTooLarge(f"webhook answered with more than {limit} bytes, once decompressed")
    if not inflater.eof:
        raise BodyUndecodable(f"webhook answered with a {name} body that ends early")
    return plain
