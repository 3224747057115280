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
    frames_of,
    length_from_wire,
    renewed_from_wire,
    renewed_to_wire,
    target_header,
    verdict_from_wire,
    verdict_to_wire,
)
from metaloop.common.http.body import Body, whole


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


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        (b"abc", b"3\nabc0\n"),
        (b"", b"0\n"),
        ([b"ab", b"", b"c"], b"3\nabc0\n"),
        ([], b"0\n"),
        ([b"x" * 70_000, b"y"], b"70000\n%s1\ny0\n" % (b"x" * 70_000)),
    ],
)
def test_a_body_under_a_lease_comes_in_frames(body: Body, sent: bytes):
    assert whole(frames_of(body)) == sent


def test_frames_can_be_sent_more_than_once():
    frames = frames_of([b"ab", b"c"])

    assert whole(frames) == whole(frames)


@pytest.mark.parametrize("line", [b"", b"-1", b"1 ", b"0x1", b"{}", b"1" * 13])
def test_a_line_that_is_no_length_is_refused(line: bytes):
    with pytest.raises(ValueError, match="no length of a frame"):
        length_from_wire(line)


def test_the_line_of_a_renewal_says_how_long_the_lease_lasts():
    assert renewed_from_wire(renewed_to_wire(4.75)[:-1]) == pytest.approx(4.75)


@pytest.mark.parametrize("line", [b"", b"soon", b"nan", b"1e9", b"4.75 1"])
def test_another_line_of_a_renewal_is_refused(line: bytes):
    with pytest.raises(ValueError, match="no length of a lease"):
        renewed_from_wire(line)
