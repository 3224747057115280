"""The model's job stream by itself; the conformance tests of links exercise it through links, on real time."""

import asyncio
from dataclasses import dataclass, field

from virtual import network, now, on_virtual_time

from metaloop.common.bus.messages import OfferOutcome
from metaloop.common.testing.builders import SHARD, job
from metaloop.simulation.bus.stream import Entry, Stream

ACK_WAIT_SECONDS = 5.0


@dataclass(eq=False)
class Taker:
    """A consumer that remembers what it got, and when."""

    room: int = 1
    got: list[tuple[Entry, float]] = field(default_factory=list[tuple[Entry, float]])

    def deliver(self, entry: Entry) -> None:
        self.room -= 1
        self.got.append((entry, now() - 1000))

    @property
    def times(self) -> list[float]:
        return [at for _, at in self.got]


def stream() -> Stream:
    made = Stream(ack_wait_seconds=ACK_WAIT_SECONDS, later=network().later)
    made.ensure()
    return made


def test_a_stream_that_is_not_there_takes_nothing():
    async def main() -> OfferOutcome:
        return Stream(ack_wait_seconds=1.0, later=network().later).put(job())

    assert on_virtual_time(main()) is OfferOutcome.UNKNOWN


def test_a_job_in_silent_hands_comes_back_after_its_time():
    async def main() -> list[float]:
        jobs, taker = stream(), Taker(room=3)
        jobs.join(taker)
        jobs.put(job())
        await asyncio.sleep(12)
        return taker.times

    assert on_virtual_time(main()) == [0.0, 5.0, 10.0]


def test_a_job_that_is_kept_alive_stays_where_it_is():
    async def main() -> list[float]:
        jobs, taker = stream(), Taker(room=3)
        jobs.join(taker)
        jobs.put(job())
        for _ in range(5):
            await asyncio.sleep(3)
            entry, _ = taker.got[-1]
            jobs.keep_alive(entry, entry.deliveries)
        return taker.times

    assert on_virtual_time(main()) == [0.0]


def test_only_the_last_delivery_speaks_for_a_job():
    async def main() -> list[float]:
        jobs, taker = stream(), Taker(room=3)
        jobs.join(taker)
        jobs.put(job())
        await asyncio.sleep(6)
        jobs.give_back(taker.got[0][0], 1, 0.0)
        await asyncio.sleep(1)
        return taker.times

    assert on_virtual_time(main()) == [0.0, 5.0]


def test_consumers_take_turns_and_none_gets_more_than_it_has_room_for():
    async def main() -> tuple[int, int]:
        jobs, one, other = stream(), Taker(room=2), Taker(room=1)
        jobs.join(one)
        jobs.join(other)
        for name in "abcd":
            jobs.put(job(name))
        return len(one.got), len(other.got)

    assert on_virtual_time(main()) == (2, 1)


def test_a_lost_store_forgets_jobs_and_stream():
    async def main() -> list[OfferOutcome]:
        jobs = stream()
        outcomes = [jobs.put(job()), jobs.put(job())]
        jobs.wipe()
        outcomes.append(jobs.put(job()))
        jobs.ensure()
        return [*outcomes, jobs.put(job())]

    queued, refused, unknown = OfferOutcome.QUEUED, OfferOutcome.ALREADY_QUEUED, OfferOutcome.UNKNOWN
    assert on_virtual_time(main()) == [queued, refused, unknown, queued]


def test_a_cleared_shard_leaves_the_others():
    async def main() -> list[OfferOutcome]:
        jobs = stream()
        jobs.put(job(shard=SHARD))
        jobs.put(job(shard="1/2"))
        jobs.clear(SHARD)
        return [jobs.put(job(shard=SHARD)), jobs.put(job(shard="1/2"))]

    assert on_virtual_time(main()) == [OfferOutcome.QUEUED, OfferOutcome.ALREADY_QUEUED]
