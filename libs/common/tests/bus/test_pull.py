import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from metaloop.common.bus.connect import Bus
from metaloop.common.bus.jobs import JobPublisher
from metaloop.common.bus.pull import Delivery, JobSource
from metaloop.common.bus.stream import JobStream
from metaloop.common.testing.builders import job
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker


class Puller:
    """A worker that holds what it is given, until told otherwise."""

    def __init__(self, bus: Bus, stream: JobStream, *, slots: int) -> None:
        self.slots = slots
        self.hands: list[Delivery] = []
        self.source = JobSource(bus, stream, room=lambda: self.slots - len(self.hands), on_job=self.take)

    async def take(self, delivery: Delivery) -> None:
        self.hands.append(delivery)

    @property
    def names(self) -> list[str]:
        return sorted(delivery.job.key.name for delivery in self.hands)

    async def finish_one(self) -> None:
        await self.hands.pop(0).finish()
        self.source.wake()


@asynccontextmanager
async def pulling(bus: Bus, stream: JobStream, *, slots: int = 4) -> AsyncIterator[Puller]:
    puller = Puller(bus, stream, slots=slots)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(puller.source.run())
        yield puller
        running.cancel()


async def offer(bus: Bus, *names: str) -> None:
    """Have these jobs stored in the stream."""
    told: list[object] = []
    publisher = JobPublisher(bus, lambda *outcome: told.append(outcome))
    async with publisher.listening():
        for name in names:
            await publisher.offer(job(name))
        await eventually(lambda: len(told) == len(names))


async def test_jobs_come_as_they_are_offered(bus: Bus, stream: JobStream):
    async with pulling(bus, stream) as puller:
        await offer(bus, "a", "b")

        await eventually(lambda: puller.names == ["a", "b"])


async def test_no_more_jobs_are_pulled_than_there_is_room_for(bus: Bus, stream: JobStream):
    await offer(bus, *(f"p{number}" for number in range(10)))
    async with pulling(bus, stream, slots=3) as puller:
        await eventually(lambda: len(puller.hands) == 3)
        for done in range(7):
            await puller.finish_one()
            await eventually(lambda: len(puller.hands) == 3)
            assert len(puller.hands) == 3, done
        await puller.finish_one()
        await eventually(lambda: len(puller.hands) == 2)


async def test_two_pullers_share_the_jobs(bus: Bus, stream: JobStream):
    await offer(bus, *(f"p{number}" for number in range(6)))
    async with pulling(bus, stream, slots=3) as first, pulling(bus, stream, slots=3) as second:
        await eventually(lambda: len(first.hands) == len(second.hands) == 3)

        assert not set(first.names) & set(second.names)


async def test_a_job_given_back_comes_again(bus: Bus, stream: JobStream):
    await offer(bus, "a")
    async with pulling(bus, stream) as puller:
        await eventually(lambda: bool(puller.hands))
        await puller.hands.pop().give_back(after_seconds=0.05)
        puller.source.wake()

        await eventually(lambda: puller.names == ["a"])


async def test_a_job_that_nobody_speaks_of_comes_again(bus: Bus, stream: JobStream):
    await offer(bus, "a")
    async with pulling(bus, stream) as puller:
        await eventually(lambda: puller.names == ["a", "a"], within_seconds=5.0)


async def test_a_job_that_is_kept_does_not_come_again(bus: Bus, stream: JobStream):
    await offer(bus, "a")
    loop = asyncio.get_running_loop()
    async with pulling(bus, stream) as puller:
        await eventually(lambda: bool(puller.hands))
        ends = loop.time() + 2.5  # ack_wait is one second
        while loop.time() < ends:
            await puller.hands[0].keep()
            with suppress(TimeoutError):
                await eventually(lambda: len(puller.hands) > 1, within_seconds=0.3)

        assert puller.names == ["a"]


async def test_a_message_that_is_no_job_is_removed(bus: Bus, stream: JobStream):
    await bus.publish("metaloop.job.poison", b"no json")
    await offer(bus, "a")
    async with pulling(bus, stream) as puller:
        await eventually(lambda: puller.names == ["a"])
        answer = await bus.request("$JS.API.STREAM.INFO.JOBS", b"", timeout_seconds=2.0)

        assert b'"messages":1,' in answer


async def test_pulling_goes_on_after_a_crash_of_the_server(broker: Broker, bus: Bus, stream: JobStream):
    async with pulling(bus, stream) as puller:
        await broker.kill()
        await eventually(lambda: not bus.is_connected)
        await broker.restart()
        await eventually(lambda: bus.is_connected)
        await offer(bus, "a")

        await eventually(lambda: "a" in puller.names)


async def test_pulling_goes_on_after_the_store_was_wiped(broker: Broker, bus: Bus, stream: JobStream):
    async with pulling(bus, stream) as puller:
        await broker.wipe()
        await eventually(lambda: bus.is_connected)
        await stream.ensure_at_last()
        await offer(bus, "a")

        await eventually(lambda: "a" in puller.names)


async def test_pulling_goes_on_after_somebody_deleted_the_consumer(bus: Bus, stream: JobStream):
    async with pulling(bus, stream) as puller:
        await offer(bus, "a")
        await eventually(lambda: puller.names == ["a"])
        await bus.request("$JS.API.CONSUMER.DELETE.JOBS.workers", b"", timeout_seconds=2.0)
        await offer(bus, "b")

        await eventually(lambda: "b" in puller.names)


async def test_pulling_goes_on_after_somebody_deleted_the_stream(bus: Bus, stream: JobStream):
    async with pulling(bus, stream) as puller:
        await bus.request("$JS.API.STREAM.DELETE.JOBS", b"", timeout_seconds=2.0)
        await eventually(lambda: bus.is_connected)
        await stream.ensure_at_last()
        await offer(bus, "a")

        await eventually(lambda: "a" in puller.names)
