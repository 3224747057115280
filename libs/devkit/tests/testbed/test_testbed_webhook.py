"""The webhook of the testbed: which calls it reports as overlapping."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, dumps
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.webhook import Behaviour, Call, Webhook, expect_last_call_shows


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


def _version(number: int) -> JsonObject:
    """An object of this version."""
    return {"metadata": {"name": f"n{number}", "resourceVersion": str(number)}}


def _call_that_shows(parent: JsonObject, *children: JsonObject, field: str = "children", ended_at: float | None = 1.0) -> Call:
    group: JsonObject = {str(index): child for index, child in enumerate(children)}
    return Call(hook="h", request={"parent": parent, field: {"ConfigMap.v1": group}}, started_at=0.0, ended_at=ended_at)


@pytest.mark.parametrize("field", ["children", "attachments", "outputs"])
def test_versions_shown_are_those_of_the_parent_and_its_children(field: str) -> None:
    call = _call_that_shows(_version(1), _version(2), _version(3), field=field)

    assert call.shown_versions == {"1", "2", "3"}


def test_last_call_that_shows_all_as_it_is_passes() -> None:
    calls = [_call_that_shows(_version(1)), _call_that_shows(_version(1), _version(2))]

    expect_last_call_shows(calls, [_version(1), _version(2)])


@pytest.mark.parametrize(
    "calls",
    [
        [],
        [_call_that_shows(_version(1), _version(2), ended_at=None)],
        [_call_that_shows(_version(1), _version(2)), _call_that_shows(_version(1), _version(3))],
        [_call_that_shows(_version(1))],
    ],
    ids=["no call", "not answered", "an older child", "a child less"],
)
def test_last_call_that_does_not_show_all_as_it_is_is_refused(calls: list[Call]) -> None:
    with pytest.raises(AssertionError, match="call"):
        expect_last_call_shows(calls, [_version(1), _version(2)])
