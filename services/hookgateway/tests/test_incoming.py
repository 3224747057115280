"""The request of one call, as it comes in part by part."""

import asyncio
from collections.abc import MutableMapping
from typing import Any

import pytest

from metaloop.hookgateway.errors import CallerLeft, LeaseEnded, MalformedCall, RequestTooLarge
from metaloop.hookgateway.incoming import IncomingCall, LeasedBody

LIMIT = 20


class Caller:
    """Sends the parts of a request."""

    def __init__(self, *parts: bytes, is_complete: bool = False) -> None:
        self._parts: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        for part in parts:
            self.send(part)
        if is_complete:
            self.send(b"", more=False)
        self.call = IncomingCall(self._parts.get, limit=LIMIT)

    def send(self, part: bytes, *, more: bool = True) -> None:
        self._parts.put_nowait({"type": "http.request", "body": part, "more_body": more})

    def leave(self) -> None:
        self._parts.put_nowait({"type": "http.disconnect"})


async def test_a_body_without_a_lease_is_the_whole_request():
    assert await Caller(b"ab", b"", b"cd", is_complete=True).call.body() == b"abcd"


@pytest.mark.parametrize("parts", [[b"4\nabcd0\n4.750\n"], [b"4", b"\nab", b"cd0", b"\n4.7", b"50\n"], [b"1\na3\nbcd0\n4.750\n4.500\n"]])
async def test_a_body_under_a_lease_comes_in_frames(parts: list[bytes]):
    assert await Caller(*parts).call.leased_body() == LeasedBody(b"abcd", 4.75)


@pytest.mark.parametrize("parts", [[b"{}\n"], [b"4\nabcd0\nsoon\n"], [b"4" * 40]])
async def test_a_call_without_a_line_about_its_lease_is_malformed(parts: list[bytes]):
    with pytest.raises(MalformedCall):
        await Caller(*parts).call.leased_body()


async def test_a_request_that_ends_before_its_body_is_malformed():
    with pytest.raises(MalformedCall, match="ends before its body"):
        await Caller(b"4\nab", is_complete=True).call.leased_body()


async def test_a_body_beyond_the_limit_is_refused_before_it_comes():
    with pytest.raises(RequestTooLarge):
        await Caller(b"21\n").call.leased_body()
    with pytest.raises(RequestTooLarge):
        await Caller(b"x" * 21).call.body()


async def test_a_caller_that_leaves_while_it_sends_is_noticed():
    caller = Caller(b"4\nab")
    caller.leave()

    with pytest.raises(CallerLeft):
        await caller.call.leased_body()


async def test_a_call_ends_with_the_lease_that_nobody_renews():
    async with asyncio.timeout(30):
        assert isinstance(await Caller().call.end(0.05), LeaseEnded)


async def test_a_call_whose_lease_is_over_already_ends_at_once():
    async with asyncio.timeout(30):
        assert isinstance(await Caller().call.end(-1.0), LeaseEnded)


async def test_a_renewed_lease_lasts_until_its_caller_leaves():
    caller = Caller(b"60.0", b"00\n")
    ending = asyncio.ensure_future(caller.call.end(1.0))
    done, _ = await asyncio.wait({ending}, timeout=1.2)
    caller.leave()

    assert not done
    assert isinstance(await ending, CallerLeft)


async def test_a_renewal_that_came_with_the_body_counts():
    caller = Caller(b"4\nabcd0\n1.000\n60.000\n")
    received = await caller.call.leased_body()
    ending = asyncio.ensure_future(caller.call.end(received.seconds))
    done, _ = await asyncio.wait({ending}, timeout=1.2)
    caller.leave()

    assert not done
    assert isinstance(await ending, CallerLeft)


async def test_a_renewal_can_end_a_lease_early():
    async with asyncio.timeout(30):
        assert isinstance(await Caller(b"60.000\n", b"0.010\n").call.end(60.0), LeaseEnded)


async def test_a_line_that_is_no_renewal_is_malformed():
    with pytest.raises(MalformedCall):
        await Caller(b"soon\n").call.end(60.0)


async def test_a_call_without_a_lease_ends_with_its_caller():
    caller = Caller()
    caller.leave()

    assert isinstance(await caller.call.end(None), CallerLeft)
