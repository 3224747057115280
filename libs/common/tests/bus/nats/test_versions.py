"""Two versions at one NATS server: what one does not know, it leaves to the other."""

import asyncio

from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.pull import NatsJobSource
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.json import dumps, loads
from metaloop.common.testing.builders import SHARD, job_key
from metaloop.devkit.broker import Broker
from metaloop.devkit.testbed.eventually import eventually, expect

from ..hands import Watcher

SETTINGS = StreamSettings(prefix="")


async def test_job_of_another_version_comes_again_until_somebody_knows_it(broker: Broker, connection: Connection):
    """A worker of this version gets it, and refuses it; it stays in the stream for a worker of the other version."""
    stream = JobStream(connection, SETTINGS)
    await stream.ensure_at_last()
    taken: list[str] = []

    async def take(delivery: object) -> None:
        taken.append(str(delivery))

    async with asyncio.TaskGroup() as tasks:
        source = NatsJobSource(connection, stream, room=lambda: 1, on_job=take)
        pulling = tasks.create_task(source.run())
        async with connected(broker.url, name="newer") as newer:
            await newer.publish(stream.subjects.job(job_key("p"), SHARD), dumps({"version": 2, "units": ["another form"]}))

            await eventually(lambda: _delivered_twice(newer))
            assert (await _messages(newer), taken) == (1, [])
        pulling.cancel()


async def _delivered_twice(connection: Connection) -> None:
    """Raise AssertionError unless the stream has delivered its job more than once."""
    info = loads(await connection.request("$JS.API.CONSUMER.INFO.JOBS.workers", b"", timeout_seconds=5))
    expect(info["delivered"]["consumer_seq"] >= 2, "it was not delivered again")


async def _messages(connection: Connection) -> int:
    """How many jobs the stream holds."""
    return loads(await connection.request("$JS.API.STREAM.INFO.JOBS", b"", timeout_seconds=5))["state"]["messages"]


async def test_claim_of_another_version_is_answered_that_its_worker_give_the_job_back(broker: Broker, connection: Connection):
    link = NatsWatcherLink(connection, SETTINGS, shard=SHARD)
    await link.ensure_stream()
    stream = JobStream(connection, SETTINGS)
    async with Watcher(link).serving() as watcher, connected(broker.url, name="newer") as newer:
        answer = await newer.request(stream.subjects.claim(SHARD), dumps([{"unit": "p"}, "w", 1, "", 2]), timeout_seconds=5)

    assert b'"busy"' in answer
    assert watcher.reports == []
