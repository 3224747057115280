from collections.abc import AsyncIterator

import pytest

from metaloop.common.bus.connect import Bus, Message
from metaloop.common.bus.jobs import JobPublisher, Outcome
from metaloop.common.bus.pull import Delivery
from metaloop.common.bus.stream import JobStream, StreamSettings
from metaloop.common.job import Job, JobKey
from metaloop.common.testing.builders import job, job_key
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker


class Outcomes:
    """What a publisher told, by key."""

    def __init__(self) -> None:
        self.told: list[tuple[JobKey, Outcome]] = []

    def __call__(self, key: JobKey, outcome: Outcome) -> None:
        self.told.append((key, outcome))

    async def next(self) -> Outcome:
        await eventually(lambda: bool(self.told))
        return self.told.pop(0)[1]


@pytest.fixture
def outcomes() -> Outcomes:
    return Outcomes()


@pytest.fixture
async def publisher(bus: Bus, outcomes: Outcomes) -> AsyncIterator[JobPublisher]:
    publisher = JobPublisher(bus, outcomes)
    async with publisher.listening():
        yield publisher


async def pulled(bus: Bus) -> Delivery:
    """The next job of the stream, in our hands."""
    deliveries: list[Delivery] = []

    async def take(message: Message) -> None:
        deliveries.append(Delivery(job=Job.from_bytes(message.data), bus=bus, ack_subject=message.reply))

    inbox = bus.new_inbox()
    async with bus.listening(inbox, take):
        await bus.publish("$JS.API.CONSUMER.MSG.NEXT.JOBS.workers", b"1", reply=inbox)
        await eventually(lambda: bool(deliveries))
    return deliveries[0]


async def test_a_job_is_queued_once(stream: JobStream, publisher: JobPublisher, outcomes: Outcomes):
    await publisher.offer(job())
    await publisher.offer(job())

    assert [await outcomes.next(), await outcomes.next()] == [Outcome.QUEUED, Outcome.ALREADY_QUEUED]


async def test_different_keys_do_not_stand_in_one_anothers_way(stream: JobStream, publisher: JobPublisher, outcomes: Outcomes):
    for name in ("a", "b", "a.b", "a b"):
        await publisher.offer(job(name))

    assert {await outcomes.next() for _ in range(4)} == {Outcome.QUEUED}


async def test_a_job_in_a_workers_hands_is_still_queued(bus: Bus, stream: JobStream, publisher: JobPublisher, outcomes: Outcomes):
    await publisher.offer(job())
    await outcomes.next()
    await pulled(bus)

    await publisher.offer(job())

    assert await outcomes.next() is Outcome.ALREADY_QUEUED


async def test_after_the_servers_receipt_a_key_can_be_queued_again(
    bus: Bus, stream: JobStream, publisher: JobPublisher, outcomes: Outcomes
):
    receipts: list[str] = []

    async def take(message: Message) -> None:
        receipts.append(message.subject)

    await bus.subscribe("done.*", take)
    await publisher.offer(job())
    await outcomes.next()
    await (await pulled(bus)).finish(receipt_to="done.lease")
    await eventually(lambda: receipts == ["done.lease"])

    await publisher.offer(job())

    assert await outcomes.next() is Outcome.QUEUED


async def test_an_offer_without_a_stream_has_an_unknown_outcome(publisher: JobPublisher, outcomes: Outcomes):
    await publisher.offer(job())

    assert await outcomes.next() is Outcome.UNKNOWN


async def test_an_offer_without_a_server_has_an_unknown_outcome(
    broker: Broker, bus: Bus, stream: JobStream, publisher: JobPublisher, outcomes: Outcomes
):
    await broker.kill()
    await eventually(lambda: not bus.is_connected)

    await publisher.offer(job())

    assert outcomes.told == [(job_key(), Outcome.UNKNOWN)]


async def test_acknowledged_jobs_live_through_a_crash(
    broker: Broker, bus: Bus, stream: JobStream, publisher: JobPublisher, outcomes: Outcomes
):
    await publisher.offer(job())
    await outcomes.next()
    await broker.kill()
    await eventually(lambda: not bus.is_connected)
    await broker.restart()
    await eventually(lambda: bus.is_connected)

    await publisher.offer(job())

    assert await outcomes.next() is Outcome.ALREADY_QUEUED


async def test_a_wiped_stream_can_be_made_again(broker: Broker, bus: Bus, stream: JobStream, publisher: JobPublisher, outcomes: Outcomes):
    await publisher.offer(job())
    await outcomes.next()
    await broker.kill()
    await eventually(lambda: not bus.is_connected)
    await broker.wipe()
    await stream.ensure_at_last()

    await publisher.offer(job())

    assert await outcomes.next() is Outcome.QUEUED


async def test_ensuring_what_exists_keeps_its_jobs(bus: Bus, stream: JobStream, publisher: JobPublisher, outcomes: Outcomes):
    await publisher.offer(job())
    await outcomes.next()

    await stream.ensure()
    await JobStream(bus, StreamSettings(ack_wait_seconds=7.0)).ensure()
    await publisher.offer(job())

    assert await outcomes.next() is Outcome.ALREADY_QUEUED
