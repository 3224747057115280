"""A call ends with the right to have it made, and the task that made it goes on."""

import asyncio
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import pytest

from metaloop.hookgateway.call_watch import AFTER_SECONDS, CallWatch
from metaloop.hookgateway.errors import CallerLeft, Draining, LeaseEnded, MalformedCall
from metaloop.hookgateway.incoming import IncomingCall


class Caller:
    """What comes in after the body of a call."""

    def __init__(self) -> None:
        self._messages: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self.incoming = IncomingCall(self._messages.get, limit=0)

    def leave(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    def send(self, part: bytes) -> None:
        self._messages.put_nowait({"type": "http.request", "body": part, "more_body": True})


async def for_ever() -> None:
    """A call that is never answered."""
    async with asyncio.timeout(20):
        await asyncio.Event().wait()


async def goes_on() -> str:
    """What a task can still do: nobody has cancelled it."""
    await asyncio.sleep(0)
    return "goes on"


async def test_call_that_is_answered_is_left_alone():
    with CallWatch(Caller().incoming, lease_seconds=60):
        await asyncio.sleep(2 * AFTER_SECONDS)

    assert await goes_on()


@pytest.mark.parametrize("lease_seconds", [-1.0, 0.0, AFTER_SECONDS / 2, 2 * AFTER_SECONDS])
async def test_call_ends_with_the_lease_of_its_caller(lease_seconds: float):
    with pytest.raises(LeaseEnded), CallWatch(Caller().incoming, lease_seconds=lease_seconds):
        await for_ever()

    assert await goes_on()


async def test_call_ends_when_its_caller_leaves():
    caller = Caller()
    caller.leave()

    with pytest.raises(CallerLeft), CallWatch(caller.incoming, lease_seconds=None):
        await for_ever()


async def test_lease_may_be_renewed_before_the_watch_begins():
    caller = Caller()
    caller.send(b"60.000\n")

    with CallWatch(caller.incoming, lease_seconds=2 * AFTER_SECONDS):
        await asyncio.sleep(4 * AFTER_SECONDS)


async def test_call_ends_when_its_caller_sends_nonsense():
    caller = Caller()
    caller.send(b"soon\n")

    with pytest.raises(MalformedCall), CallWatch(caller.incoming, lease_seconds=60):
        await for_ever()


async def test_call_can_be_ended_for_another_reason():
    async def call() -> None:
        with CallWatch(Caller().incoming, lease_seconds=60) as watch:
            asyncio.get_running_loop().call_soon(watch.end, Draining("goes away"))
            await for_ever()

    with pytest.raises(Draining):
        await call()


async def test_call_that_was_answered_as_it_was_ended_keeps_its_answer():
    with CallWatch(Caller().incoming, lease_seconds=60) as watch:
        asyncio.get_running_loop().call_soon(watch.end, Draining("goes away"))
        with suppress(asyncio.CancelledError):
            await for_ever()

    assert await goes_on()


async def test_cancelled_task_stays_cancelled():
    async def call() -> None:
        with CallWatch(Caller().incoming, lease_seconds=60) as watch:
            asyncio.get_running_loop().call_soon(watch.end, Draining("goes away"))
            asyncio.get_running_loop().call_soon(calling.cancel)
            await for_ever()

    calling = asyncio.ensure_future(call())

    await asyncio.wait({calling})

    assert calling.cancelled()
