"""The webhook of the testbed: which calls it reports as overlapping."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio

from metaloop.common.json import JsonObject, dumps
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.webhook import Behaviour, Webhook


@pytest_asyncio.fixture
async def webhook() -> AsyncIterator[Webhook]:
    async with Webhook.serve() as webhook:
        yield webhook


async def _call(webhook: Webhook, parent: str, *, revision: str = "") -> None:
    body = dumps({"parent": {"metadata": {"name": parent, "uid": parent, "resourceVersion": "1"}, "spec": {"text": revision}}})
    async with aiohttp.ClientSession() as session, session.post(webhook.url("h"), data=body) as response:
        await response.read()


def _when_all_have_arrived(number: int) -> Behaviour:
    """A hook that answers when this many calls have arrived."""
    arrivals = asyncio.Barrier(number)

    async def behave(_: JsonObject) -> JsonObject:
        await arrivals.wait()
        return {}

    return behave


async def test_concurrent_calls_for_one_parent_are_an_overlap(webhook: Webhook) -> None:
    webhook.on("h", _when_all_have_arrived(2))

    await asyncio.gather(_call(webhook, "p"), _call(webhook, "p"))

    assert len(webhook.overlaps) == 1


async def test_calls_for_two_parents_or_in_sequence_are_no_overlap(webhook: Webhook) -> None:
    webhook.on("h", _when_all_have_arrived(2))

    await asyncio.gather(_call(webhook, "p"), _call(webhook, "q"))
    webhook.on("h", lambda _: {})
    await _call(webhook, "p")

    assert webhook.overlaps == []
    assert [call.parent_name for call in webhook.calls("h", parent="p")] == ["p", "p"]


async def test_concurrent_calls_for_two_revisions_are_no_overlap(webhook: Webhook) -> None:
    webhook.on("h", _when_all_have_arrived(2))

    await asyncio.gather(_call(webhook, "p", revision="old"), _call(webhook, "p", revision="new"))

    assert webhook.overlaps == []


async def test_a_call_ends_when_its_caller_disconnects(webhook: Webhook) -> None:
    webhook.on("h", _when_all_have_arrived(2))
    first = asyncio.ensure_future(_call(webhook, "p"))

    async def arrived() -> None:
        expect(webhook.calls("h"), "no call yet")

    await eventually(arrived)
    first.cancel()
    await asyncio.wait([first])
    webhook.on("h", lambda _: {})
    await _call(webhook, "p")

    assert webhook.overlaps == []
    assert [call.answered for call in webhook.calls("h")] == [False, True]
