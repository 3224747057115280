import pytest

from metaloop.common.bus.claims import claim, serving_claims
from metaloop.common.bus.connect import Bus
from metaloop.common.bus.messages import ClaimRequest
from metaloop.common.errors import Unavailable
from metaloop.common.observation import Busy, Granted, granted_to_bytes, refusal_to_bytes
from metaloop.common.testing.builders import SHARD, cached_observation, job_key

REQUEST = ClaimRequest(key=job_key(), worker="worker", slots=3)


async def test_a_claim_brings_the_observation(bus: Bus):
    asked: list[ClaimRequest] = []

    def answer(request: ClaimRequest) -> bytes:
        asked.append(request)
        return granted_to_bytes(cached_observation(), lease="lease", lease_seconds=5.0)

    async with serving_claims(bus, SHARD, handler=answer):
        reply = await claim(bus, SHARD, REQUEST)

    assert asked == [REQUEST]
    assert isinstance(reply, Granted)
    assert reply.observation.parent == {"metadata": {"name": "parent"}}


async def test_an_observation_larger_than_a_message_comes_whole(bus: Bus):
    padding = b"x" * (2 * bus.max_payload + 12_345)
    parent = b'{"padding":"' + padding + b'"}'

    def answer(_: ClaimRequest) -> bytes:
        return granted_to_bytes(cached_observation(parent), lease="lease", lease_seconds=5.0)

    async with serving_claims(bus, SHARD, handler=answer):
        reply = await claim(bus, SHARD, REQUEST)

    assert isinstance(reply, Granted)
    assert reply.observation.parent == {"padding": padding.decode()}


async def test_a_grant_is_not_handed_out_to_its_end_by_who_leads_no_more(bus: Bus):
    leads = True
    padding = b'{"padding":"' + b"x" * 2 * bus.max_payload + b'"}'

    def answer(_: ClaimRequest) -> bytes:
        nonlocal leads
        leads = False
        return granted_to_bytes(cached_observation(padding), lease="lease", lease_seconds=5.0)

    async with serving_claims(bus, SHARD, handler=answer, leads=lambda: leads):
        with pytest.raises(Unavailable):
            await claim(bus, SHARD, REQUEST)


async def test_a_refusal_comes_as_it_was_given(bus: Bus):
    async with serving_claims(bus, SHARD, handler=lambda _: refusal_to_bytes(Busy(retry_seconds=0.5))):
        assert await claim(bus, SHARD, REQUEST) == Busy(retry_seconds=0.5)


async def test_a_reply_that_cannot_be_read_fails(bus: Bus):
    async with serving_claims(bus, SHARD, handler=lambda _: b'{"state":"unheard of"}'):
        with pytest.raises(Unavailable, match="can't be read"):
            await claim(bus, SHARD, REQUEST)


async def test_a_claim_without_a_watcher_fails(bus: Bus):
    with pytest.raises(Unavailable):
        await claim(bus, SHARD, REQUEST)


async def test_each_shard_has_its_own_watcher(bus: Bus):
    async with serving_claims(bus, "1/2", handler=lambda _: b""):
        with pytest.raises(Unavailable):
            await claim(bus, "0/2", REQUEST)
