"""Several clusters on one NATS server: each keeps to its own jobs, and says so where it can't."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from metaloop.common.bus.messages import ClaimRequest, OfferOutcome
from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.bus.nats.stream_owner import CLUSTER_KEY
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.errors import OtherCluster, Unavailable
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.common.observation import Busy
from metaloop.common.testing.builders import SHARD, job, job_key
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker

from ..hands import Watcher, pulling


@dataclass(frozen=True, slots=True)
class Side:
    """The links of one cluster, both over one connection."""

    connection: Connection
    settings: StreamSettings

    @property
    def stream(self) -> JobStream:
        return JobStream(self.connection, self.settings)

    @property
    def watcher(self) -> NatsWatcherLink:
        return NatsWatcherLink(self.connection, self.settings, shard=SHARD)

    @property
    def worker(self) -> NatsWorkerLink:
        return NatsWorkerLink(self.connection, self.settings)


@pytest.fixture
async def other_connection(broker: Broker) -> AsyncIterator[Connection]:
    async with connected(broker.url, name="other") as connection:
        yield connection


@pytest.fixture
def east(connection: Connection) -> Side:
    return Side(connection, StreamSettings(ack_wait_seconds=2.0, cluster="east"))


@pytest.fixture
def west(other_connection: Connection) -> Side:
    """Another cluster, whose names on the server are the same."""
    return Side(other_connection, StreamSettings(ack_wait_seconds=7.0, cluster="west"))


def prefixed(side: Side, prefix: str) -> Side:
    """The same cluster with names of its own."""
    return Side(side.connection, StreamSettings(ack_wait_seconds=2.0, cluster=side.settings.cluster, prefix=prefix))


def unidentified(side: Side) -> Side:
    """The same, but it may not read its cluster's UID."""
    return Side(side.connection, StreamSettings(ack_wait_seconds=2.0))


async def js(connection: Connection, call: str, body: JsonObject | None = None) -> JsonObject:
    """What JetStream answers to a call."""
    return loads(await connection.request(f"$JS.API.{call}", dumps(body or {}), timeout_seconds=30.0))


async def stream_config(connection: Connection, name: str = "JOBS") -> JsonObject:
    return unstructured.child_object(await js(connection, f"STREAM.INFO.{name}"), "config")


async def owner(connection: Connection) -> str:
    return unstructured.text(unstructured.child_object(await stream_config(connection), "metadata"), CLUSTER_KEY)


async def test_stream_says_whose_it_is(east: Side):
    await east.stream.ensure()

    assert await owner(east.connection) == "east"


async def test_a_stream_of_ours_is_ensured_again(east: Side):
    await east.stream.ensure()

    await Side(east.connection, StreamSettings(ack_wait_seconds=3.0, cluster="east", replicas=1)).stream.ensure()

    assert await owner(east.connection) == "east"


async def test_stream_of_another_cluster_stays_as_it_is(east: Side, west: Side):
    await east.stream.ensure()
    before = await js(east.connection, "CONSUMER.INFO.JOBS.workers")
    config = await stream_config(east.connection)

    with pytest.raises(OtherCluster, match=r"JOBS.*cluster east.*cluster west.*METALOOP_NATS_PREFIX"):
        await west.stream.ensure()

    assert await stream_config(east.connection) == config
    assert (await js(east.connection, "CONSUMER.INFO.JOBS.workers"))["config"] == before["config"]


async def test_stream_that_is_not_ours_stays_as_it_is(east: Side):
    await js(east.connection, "STREAM.CREATE.JOBS", {"name": "JOBS", "subjects": ["print.>"], "storage": "file"})
    config = await stream_config(east.connection)

    with pytest.raises(OtherCluster, match="not a job stream of Metaloop"):
        await east.stream.ensure()

    assert await stream_config(east.connection) == config


async def test_stream_of_an_older_version_is_adopted_with_its_jobs(east: Side, west: Side):
    await unidentified(east).stream.ensure()
    async with Watcher(unidentified(east).watcher).serving() as watcher:
        await watcher.queue("a")

        await east.stream.ensure()

        assert await watcher.offer(job("a")) == [OfferOutcome.ALREADY_QUEUED]
    with pytest.raises(OtherCluster):
        await west.stream.ensure()


async def test_of_two_clusters_that_adopt_a_stream_at_once_one_is_refused(east: Side, west: Side):
    await unidentified(east).stream.ensure()

    ends = await asyncio.gather(east.stream.ensure(), west.stream.ensure(), return_exceptions=True)

    assert sorted(isinstance(end, OtherCluster) for end in ends) == [False, True]


async def test_service_that_does_not_know_its_cluster_keeps_the_streams_owner(east: Side):
    await east.stream.ensure()

    await unidentified(east).stream.ensure()

    assert await owner(east.connection) == "east"


async def test_clusters_with_prefixes_share_a_server(east: Side, west: Side):
    one, other = prefixed(east, "one"), prefixed(west, "other")
    await one.stream.ensure()
    await other.stream.ensure()
    async with Watcher(one.watcher).serving() as watcher, Watcher(other.watcher).serving() as other_watcher:
        await watcher.queue("a")
        await other_watcher.queue("a", "b")
        async with pulling(one.worker) as worker, pulling(other.worker) as other_worker:
            await eventually(lambda: (worker.names, other_worker.names) == (["a"], ["a", "b"]))

        await one.worker.claim(SHARD, ClaimRequest(key=job_key("a"), worker="w", free_slots=1))

    assert (await stream_config(east.connection, "one-JOBS"))["subjects"] == ["one.metaloop.job.>"]
    assert (await stream_config(east.connection, "other-JOBS"))["subjects"] == ["other.metaloop.job.>"]


async def test_worker_of_another_cluster_gets_no_job_until_the_stream_is_its_own(broker: Broker, east: Side, west: Side):
    await east.stream.ensure()
    link = west.worker
    async with Watcher(east.watcher).serving() as watcher, pulling(link) as worker:
        await refused(link, expected=True)
        await watcher.queue("a")
        await asyncio.sleep(0.5)
        assert worker.names == []

        await broker.wipe()

        await refused(link, expected=False)
        async with Watcher(west.watcher).serving() as own_watcher:
            await own_watcher.queue("b")
            await eventually(lambda: worker.names == ["b"])


async def test_claim_of_another_clusters_worker_is_refused_and_stops_its_pulls(east: Side, west: Side):
    await east.stream.ensure()
    link = west.worker  # it was told nothing of the stream yet
    async with Watcher(east.watcher).serving() as watcher:
        watcher.claim_reply = lambda _: Busy(retry_seconds=9.0)

        with pytest.raises(OtherCluster, match=r"cluster east.*cluster west"):
            await link.claim(SHARD, ClaimRequest(key=job_key("a"), worker="w", free_slots=1))

    with pytest.raises(OtherCluster):
        await link.check_stream()


async def test_claim_of_a_worker_that_knows_no_cluster_is_answered(east: Side):
    await east.stream.ensure()
    async with Watcher(east.watcher).serving() as watcher:
        watcher.claim_reply = lambda _: Busy(retry_seconds=9.0)

        reply = await unidentified(east).worker.claim(SHARD, ClaimRequest(key=job_key("a"), worker="w", free_slots=1))

    assert reply == Busy(retry_seconds=9.0)


async def test_watcher_offers_nothing_to_a_stream_that_became_another_clusters(east: Side, west: Side):
    await east.stream.ensure()
    link = east.watcher
    async with Watcher(link).serving() as watcher:
        await js(west.connection, "STREAM.DELETE.JOBS")
        await west.stream.ensure()
        with pytest.raises(OtherCluster):
            await west.worker.claim(SHARD, ClaimRequest(key=job_key("a"), worker="w", free_slots=1))

        assert await watcher.offer(job("a")) == [OfferOutcome.UNKNOWN]
        with pytest.raises(OtherCluster):
            await link.clear_stream()

    state = unstructured.child_object(await js(west.connection, "STREAM.INFO.JOBS"), "state")
    assert unstructured.integer(state, "messages") == 0


async def test_a_wrong_refusal_ends_when_readiness_is_asked_for(east: Side, west: Side):
    await east.stream.ensure()
    link = east.watcher
    async with Watcher(link).serving() as watcher:
        with pytest.raises(OtherCluster):
            await west.worker.claim(SHARD, ClaimRequest(key=job_key("a"), worker="w", free_slots=1))

        await link.check_stream()

        await watcher.queue("a")


async def refused(link: NatsWorkerLink, *, expected: bool) -> None:
    """Wait until a link does not use the stream, or does so again."""
    async with asyncio.timeout(30):
        while await _is_refused(link) is not expected:  # noqa: ASYNC110 - a link tells nobody of it
            await asyncio.sleep(0.01)


async def _is_refused(link: NatsWorkerLink) -> bool:
    try:
        await link.check_stream()
    except Unavailable:
        return True
    return False
