"""The reconciler's call to the gateway, as both ends read it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.errors import Unavailable
from metaloop.common.faults import Fault, UnknownFault
from metaloop.common.hooks.call import (
    Accepted,
    NotModified,
    Rejected,
    Throttled,
    Verdict,
    target_header,
    verdict_from_wire,
    verdict_to_wire,
)


@pytest.mark.parametrize(
    "verdict",
    [
        Accepted(body=b"{}"),
        NotModified(body=b'{"children":[]}'),
        Throttled(after_seconds=None),
        Throttled(after_seconds=1.5, fault=Fault.CIRCUIT_OPEN, message="did not answer"),
        Rejected(fault=Fault.TIMED_OUT, message="no answer within 10 s"),
        Rejected(fault=UnknownFault("Invented"), message="what a newer gateway says"),
    ],
)
def test_verdict_survives_the_wire(verdict: Verdict):
    assert verdict_from_wire(*verdict_to_wire(verdict)) == verdict


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("", b"<html>"),
        ("fine", b"{}"),
        ("rejected", b"<html>"),
        ("rejected", b"[]"),
        ("rejected", b"{}"),
        ("throttled", b"null"),
        ("throttled", b'{"fault":"","message":"","afterSeconds":"x"}'),
    ],
)
def test_answer_without_a_verdict_is_unavailable(name: str, body: bytes):
    with pytest.raises(Unavailable, match="without a verdict"):
        verdict_from_wire(name, body)


@given(st.text())
def test_target_header_is_ascii_and_lossless(text: str):
    header = target_header({"webhook": {"url": text}})

    assert header.isascii()
    assert json.loads(header) == {"webhook": {"url": text}}
