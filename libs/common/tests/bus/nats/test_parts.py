"""Large replies are pulled part by part."""

import pytest

from metaloop.common.bus.messages import ClaimRequest
from metaloop.common.bus.nats.connection import Connection
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.errors import Unavailable
from metaloop.common.observation import CachedGrant, LeaseTerms
from metaloop.common.testing.builders import SHARD, cached_observation, job_key

from ..hands import Watcher

STREAM = StreamSettings(ack_wait_seconds=1.0)


async def test_a_lease_is_told_although_the_rest_of_its_grant_never_comes(connection: Connection):
    watcher = Watcher(NatsWatcherLink(connection, STREAM, shard=SHARD))
    observation = cached_observation(b'{"padding":"' + b"x" * (2 * connection.max_payload) + b'"}')
    watcher.claim_reply = lambda _: CachedGrant(lease="lease", lease_seconds=5.0, observation=observation)
    told: list[LeaseTerms] = []

    def lead_no_more(terms: LeaseTerms) -> None:
        told.append(terms)
        watcher.leads = False

    request = ClaimRequest(key=job_key(), worker="worker", free_slots=1)
    async with watcher.serving():
        with pytest.raises(Unavailable):
            await NatsWorkerLink(connection, STREAM).claim(SHARD, request, on_lease=lead_no_more)

    assert told == [LeaseTerms(lease="lease", seconds=5.0)]
