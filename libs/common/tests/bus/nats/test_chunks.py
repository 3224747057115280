"""Messages in chunks, without a server: what arrives whole, and what is dropped."""

from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.bus.nats.chunks import ChunkJoiner, chunks_of


def chunks(body: bytes) -> list[bytes]:
    return chunks_of(body, max_payload=5000)


def test_a_message_that_fits_is_sent_as_it_is():
    assert chunks(b"{}") == [b"{}"]
    assert ChunkJoiner().whole(b"{}") == b"{}"


@given(body=st.binary(max_size=100).map(lambda part: b"{" + part * 97))
def test_chunks_fit_and_make_the_message_again(body: bytes):
    joiner, sent = ChunkJoiner(), chunks(body)

    *others, last = [joiner.whole(chunk) for chunk in sent]

    assert all(len(chunk) <= 5000 for chunk in sent)
    assert others == [None] * (len(sent) - 1)
    assert last == body


def test_messages_of_several_senders_do_not_mix():
    joiner, one, two = ChunkJoiner(), chunks(b"1" * 1500), chunks(b"2" * 1500)

    arrived = [joiner.whole(chunk) for pair in zip(one, two, strict=True) for chunk in pair]

    assert [message for message in arrived if message is not None] == [b"1" * 1500, b"2" * 1500]


def test_a_message_that_lost_a_chunk_is_dropped_and_the_next_one_is_not():
    joiner, holed, whole = ChunkJoiner(), chunks(b"1" * 3000), chunks(b"2" * 3000)

    arrived = [joiner.whole(chunk) for chunk in [*holed[:1], *holed[2:], *whole]]

    assert [message for message in arrived if message is not None] == [b"2" * 3000]


def test_messages_that_are_never_complete_take_no_more_and_more_memory():
    joiner = ChunkJoiner()
    first = chunks(b"0" * 1500)
    for message in [first, *(chunks(b"%d" % number * 1500) for number in range(256))]:
        joiner.whole(message[0])

    assert [joiner.whole(chunk) for chunk in first[1:]] == [None] * (len(first) - 1)
