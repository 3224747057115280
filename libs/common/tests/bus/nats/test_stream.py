"""The job stream over NATS: what others may do to it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from metaloop.common.bus.links import Delivery
from metaloop.common.bus.messages import ClaimRequest, OfferOutcome
from metaloop.common.bus.nats.connection import Connection, Message
from metaloop.common.bus.nats.offers import JobOffers
from metaloop.common.bus.nats.stream import JobStream, StreamSettings
from metaloop.common.bus.nats.subjects import Subjects
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.errors import Unavailable
from metaloop.common.job import JobKey
from metaloop.common.json import loads
from metaloop.common.testing.builders import SHARD, job, job_key
from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.eventually import eventually as until
from metaloop.devkit.testbed.eventually import expect

STREAM = StreamSettings(ack_wait_seconds=3.0)


@pytest.fixture
async def stream(connection: Connection) -> JobStream:
    stream = JobStream(connection, STREAM)
    await stream.ensure()
    return stream


@pytest.fixture
async def names(connection: Connection, stream: JobStream) -> AsyncIterator[list[str]]:
    """The parents whose jobs a worker was given, in order."""
    names: list[str] = []

    async def take(delivery: Delivery) -> None:
        names.append(delivery.job.key.name)
        await delivery.finish(lease="")

    source = NatsWorkerLink(connection, STREAM).jobs(room=lambda: 4, on_job=take)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(source.run())
        yield names
        running.cancel()


async def offered(connection: Connection, name: str) -> OfferOutcome:
    """What became of the job of a parent."""
    told: list[OfferOutcome] = []

    def tell(_: JobKey, outcome: OfferOutcome) -> None:
        told.append(outcome)

    offers = JobOffers(connection, JobStream(connection, STREAM), tell)
    async with offers.listening():
        await offers.offer(job(name))
        await eventually(lambda: bool(told))
    return told[0]


async def test_a_message_that_is_no_job_is_removed(connection: Connection, names: list[str]):
    await connection.publish("metaloop.job.poison", b"no json")
    await offered(connection, "a")
    await eventually(lambda: names == ["a"])

    async def is_empty() -> None:
        state = loads(await connection.request("$JS.API.STREAM.INFO.JOBS", b"", timeout_seconds=30.0))["state"]
        expect(state["messages"] == 0, f"the state is {state}")

    await until(is_empty)


async def test_jobs_are_pulled_after_somebody_deleted_the_consumer(connection: Connection, names: list[str]):
    await offered(connection, "a")
    await eventually(lambda: names == ["a"])
    await connection.request("$JS.API.CONSUMER.DELETE.JOBS.workers", b"", timeout_seconds=30.0)
    await offered(connection, "b")

    await eventually(lambda: names[-1] == "b")
    assert set(names) == {"a", "b"}, "the first comes again where its acknowledgement came too late"


async def test_jobs_are_pulled_after_somebody_deleted_the_stream(connection: Connection, stream: JobStream, names: list[str]):
    await connection.request("$JS.API.STREAM.DELETE.JOBS", b"", timeout_seconds=30.0)
    await stream.ensure_at_last()
    await offered(connection, "a")

    await eventually(lambda: names == ["a"])


async def test_a_stream_that_is_configured_anew_keeps_its_jobs(connection: Connection, stream: JobStream):
    await offered(connection, "a")

    await JobStream(connection, StreamSettings(ack_wait_seconds=7.0)).ensure()

    assert await offered(connection, "a") is OfferOutcome.ALREADY_QUEUED


async def test_a_reply_that_cannot_be_read_fails(connection: Connection):
    async def answer(message: Message) -> None:
        await connection.publish(message.reply, b'{"state":"unheard of"}')

    link = NatsWorkerLink(connection, STREAM)
    async with connection.listening(Subjects().claim(SHARD), answer):
        with pytest.raises(Unavailable, match="can't be read"):
            await link.claim(SHARD, ClaimRequest(key=job_key(), worker="worker", free_slots=1))
