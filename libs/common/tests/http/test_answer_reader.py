"""Answers, read from the bytes of a connection, wherever those are cut."""

from itertools import pairwise

import httptools
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.http.answer import Answer, AnswerReader

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 503 Away\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
BODILESS = b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
UNSIZED = b"HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\nhello"


class Connection:
    """A reader and the answers that it passed on."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.kept_alive: list[bool] = []
        self.reader = AnswerReader(self._answered)

    def feed(self, *parts: bytes) -> "Connection":
        for part in parts:
            self.reader.feed(part)
        return self

    def _answered(self, answer: Answer) -> None:
        self.answers.append(answer)
        self.kept_alive.append(self.reader.keeps_alive)

    @property
    def read(self) -> list[tuple[int, bytes]]:
        return [(answer.status, answer.body) for answer in self.answers]


def pieces(wire: bytes, cuts: list[int]) -> list[bytes]:
    """`wire`, cut at these places."""
    edges = [0, *sorted(cut % len(wire) for cut in cuts), len(wire)]
    return [wire[start:end] for start, end in pairwise(edges) if start < end]


@given(
    st.lists(st.sampled_from([SIZED, CHUNKED, BODILESS, INTERIM + SIZED]), min_size=1, max_size=4),
    st.lists(st.integers(0, 999), max_size=8),
)
def test_answers_are_the_same_wherever_their_bytes_are_cut(wires: list[bytes], cuts: list[int]):
    expected = {SIZED: (200, b"hello"), CHUNKED: (503, b"hello"), BODILESS: (304, b""), INTERIM + SIZED: (200, b"hello")}

    connection = Connection().feed(*pieces(b"".join(wires), cuts))

    assert connection.read == [expected[wire] for wire in wires]
    assert not connection.reader.is_partial


@pytest.mark.parametrize("wire", [SIZED, CHUNKED], ids=["sized", "chunked"])
def test_answer_is_partial_until_its_last_byte(wire: bytes):
    reader = Connection().reader
    was_partial: list[bool] = []

    for byte in wire:
        reader.feed(bytes([byte]))
        was_partial.append(reader.is_partial)

    assert was_partial[-1] is False
    assert all(was_partial[len("HTTP/1.1 ") : -1])


def test_headers_of_an_interim_answer_are_not_those_of_the_final_one():
    [answer] = Connection().feed(INTERIM, SIZED).answers

    assert answer.headers == ((b"Content-Length", b"5"), (b"X-A", b"1"))


@pytest.mark.parametrize(
    ("wire", "completes"),
    [
        (UNSIZED, True),
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (SIZED[:-1], False),
        (CHUNKED[:-1], False),
        (UNSIZED.replace(b"X-A: 1", b"content-LENGTH: 9"), False),
        (b"HTTP/1.1 200 OK\r\nX-A: 1\r\n", False),
        (INTERIM, False),
        (b"", False),
    ],
    ids=["unsized", "empty", "sized", "chunked", "sized in another case", "headers", "interim", "nothing"],
)
def test_end_of_the_connection_completes_only_an_answer_without_length(wire: bytes, *, completes: bool):
    connection = Connection()
    if wire:
        connection.feed(wire)

    assert connection.reader.feed_eof() is completes
    assert len(connection.answers) == completes


@pytest.mark.parametrize(
    ("wire", "keeps_alive"),
    [
        (SIZED, True),
        (CHUNKED, True),
        (SIZED.replace(b"X-A: 1", b"Connection: close"), False),
        (SIZED.replace(b"HTTP/1.1", b"HTTP/1.0"), False),
        (SIZED.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"X-A: 1", b"Connection: keep-alive"), True),
    ],
    ids=["1.1", "chunked", "close", "1.0", "1.0 with keep-alive"],
)
def test_answer_says_whether_the_connection_is_kept(wire: bytes, *, keeps_alive: bool):
    assert Connection().feed(wire).kept_alive == [keeps_alive]


@pytest.mark.parametrize(
    "wire",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        SIZED + b"more",
    ],
    ids=["nonsense", "a request", "no status", "no length", "more than an answer"],
)
def test_bytes_that_are_no_answer_are_refused(wire: bytes):
    with pytest.raises(httptools.HttpParserError):
        Connection().feed(wire)


@pytest.mark.parametrize(("name", "value"), [("x-a", "1"), ("X-A", "1"), ("x-b", "ü"), ("x-c", "")])
def test_header_is_found_in_any_case_and_the_first_counts(name: str, value: str):
    answer = Answer(200, ((b"X-a", b"1"), (b"X-A", b"2"), (b"X-B", b"\xfc")), b"")

    assert answer.header(name) == value
