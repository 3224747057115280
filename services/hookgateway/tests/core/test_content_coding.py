"""Content codings, undone within a limit."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.hookgateway.core.content_coding import plain_bytes, plain_prefix
from metaloop.hookgateway.errors import BodyTooLarge, BodyUndecodable

BOMB = gzip.compress(b"\0" * 10_000_000, mtime=0)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", b"plain"),
        ("identity", b"plain"),
        ("gzip", gzip.compress(b"plain", mtime=0)),
        ("GZIP", gzip.compress(b"plain", mtime=0)),
        (" x-gzip ", gzip.compress(b"plain", mtime=0)),
        ("deflate", zlib.compress(b"plain")),
    ],
)
def test_known_coding_is_undone(coding: str, body: bytes):
    assert plain_bytes(body, coding=coding, limit=100) == b"plain"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "compress", "\x00", "g" * 1000])
def test_coding_that_was_not_offered_is_refused(coding: str):
    with pytest.raises(BodyUndecodable, match="we accept gzip, deflate"):
        plain_bytes(b"plain", coding=coding, limit=100)


@pytest.mark.parametrize("body", [b"", b"plain", b"\x1f\x8b", gzip.compress(b"plain", mtime=0)[:-1], zlib.compress(b"plain")])
def test_body_that_is_not_in_its_coding_is_refused(body: bytes):
    with pytest.raises(BodyUndecodable):
        plain_bytes(body, coding="gzip", limit=100)


@pytest.mark.parametrize(("coding", "body"), [("", b"x" * 101), ("gzip", gzip.compress(b"x" * 101, mtime=0)), ("gzip", BOMB)])
def test_more_than_the_limit_is_refused(coding: str, body: bytes):
    with pytest.raises(BodyTooLarge):
        plain_bytes(body, coding=coding, limit=100)


@pytest.mark.parametrize(("coding", "body"), [("", b"x" * 100), ("gzip", gzip.compress(b"x" * 100, mtime=0))])
def test_exactly_the_limit_is_accepted(coding: str, body: bytes):
    assert plain_bytes(body, coding=coding, limit=100) == b"x" * 100


@pytest.mark.parametrize(
    ("coding", "body", "prefix"),
    [
        ("", b"0123456789", b"01234"),
        ("br", b"0123456789", b"01234"),
        ("gzip", gzip.compress(b"0123456789", mtime=0), b"01234"),
        ("gzip", gzip.compress(b"0123456789", mtime=0)[:14], b"012"),
        ("gzip", b"not gzip", b""),
        ("gzip", BOMB, b"\0" * 5),
    ],
)
def test_prefix_is_as_much_as_can_be_decoded(coding: str, body: bytes, prefix: bytes):
    assert plain_prefix(body, coding=coding, limit=5) == prefix


@given(st.binary(), st.sampled_from(["", "gzip", "deflate", "br"]), st.integers(0, 50))
def test_result_is_never_longer_than_the_limit(body: bytes, coding: str, limit: int):
    try:
        plain = plain_bytes(body, coding=coding, limit=limit)
    except (BodyTooLarge, BodyUndecodable):
        return

    assert len(plain) <= limit
