"""What of a webhook's text may be shown."""

import gzip
import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.hookgateway.core.redaction import EXCERPT_LENGTH, NO_SECRETS, Secrets, excerpt


def shown(body: str, *values: str) -> str:
    return excerpt(body.encode(), coding="", secrets=Secrets.of(values))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("no such parent", "no such parent"),
        ("  Traceback:\n\tline 1\r\n\n  line 2 ", "Traceback: line 1 line 2"),
        ("bell \x07 and \x1b[31mred", "bell and [31mred"),
        ("", ""),
    ],
)
def test_text_is_put_on_one_line(body: str, text: str):
    assert shown(body) == text


def test_long_text_is_cut():
    assert shown("x" * 10_000) == "x" * EXCERPT_LENGTH + "…"


def test_compressed_text_is_readable():
    assert excerpt(gzip.compress(b"no such parent"), coding="gzip", secrets=NO_SECRETS) == "no such parent"


def test_bytes_that_are_not_text_are_replaced():
    assert excerpt(b"\xff\xfe{}", coding="", secrets=NO_SECRETS) == "��{}"


@pytest.mark.parametrize("spelling", [str, lambda value: json.dumps(value)[1:-1], html.escape, lambda value: quote(value, safe="")])
def test_secret_that_a_webhook_echoes_is_masked_in_each_spelling(spelling: Callable[[str], str]):
    secret = "p\"a/s&s'w<o>rd é"

    assert shown(f"your password {spelling(secret)} is wrong", secret) == "your password *** is wrong"


@pytest.mark.parametrize("echo", ["Authorization: Bearer abc.def-ghi", "authorization: basic dXNlcjpwYXNz", "Token%20s3cr3t denied"])
def test_credentials_are_masked_even_if_they_are_not_ours(echo: str):
    assert "***" in shown(echo)
    assert not any(secret in shown(echo) for secret in ("abc", "dXNl", "s3cr3t"))


@pytest.mark.parametrize(
    "plain",
    [
        "Unexpected token < in JSON",
        "the token is missing",
        "token expired",
        "basic validation failed",
        "no bearer",
        "hook-token does not exist",
    ],
)
def test_plain_english_is_not_masked(plain: str):
    assert shown(plain) == plain


def test_secret_within_another_does_not_uncover_the_rest_of_it():
    assert shown("user abcdef", "abc", "abcdef") == "user ***"


def test_representation_shows_no_secrets():
    assert "hunter2" not in repr(Secrets.of(["hunter2"]))


@given(st.text(alphabet="abcdef0123456789", min_size=8, max_size=40), st.integers(0, 2 * EXCERPT_LENGTH))
def test_no_part_of_a_secret_survives_the_cut(secret: str, before: int):
    """A secret that spans the cut must be masked too."""
    text = shown("-" * before + secret, secret)

    assert secret[:4] not in text.replace("***", "")
