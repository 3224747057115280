"""How the load counts what has come about, and how much of it is in flight."""

import asyncio

import pytest

from bench.load import ObjectCount, in_parallel, is_settled
from metaloop.common.json import JsonObject

THREE = is_settled(children=3)


def a_parent(name: str = "p", *, generation: int = 1, children: int = 3) -> JsonObject:
    return {"metadata": {"name": name}, "status": {"observedGeneration": generation, "children": children}}


def event(obj: JsonObject, *, kind: str = "MODIFIED") -> JsonObject:
    return {"type": kind, "object": obj}


def counter(*, deleted: bool = False) -> ObjectCount:
    return ObjectCount(THREE, deleted=deleted, version="1")


@pytest.mark.parametrize(
    ("obj", "settled"),
    [
        (a_parent(), True),
        (a_parent(generation=2), True),
        (a_parent(generation=0), False),
        (a_parent(children=2), False),
        ({"metadata": {"name": "p"}}, False),
    ],
    ids=["its generation", "a later one", "an older one", "too few children", "no status"],
)
def test_parent_is_settled_when_its_status_counts_the_children(obj: JsonObject, *, settled: bool) -> None:
    assert THREE(obj) is settled


async def test_objects_are_counted_once_however_often_they_change() -> None:
    count = counter()

    for _ in range(3):
        count.add(event(a_parent("a")))
    count.add(event(a_parent("b"), kind="ADDED"))

    await asyncio.wait_for(count.reach(2), 1)
    with pytest.raises(TimeoutError, match="2 of 3"):
        await count.reach(3, within_seconds=0.01)


async def test_object_that_is_no_longer_right_is_no_longer_counted() -> None:
    count = counter()
    count.add(event(a_parent("a")))

    count.add(event(a_parent("a", children=1)))

    with pytest.raises(TimeoutError, match="0 of 1"):
        await count.reach(1, within_seconds=0.01)


async def test_deleted_object_counts_where_deletions_are_counted_and_nowhere_else() -> None:
    alive, gone = counter(), counter(deleted=True)

    for count in (alive, gone):
        count.add(event(a_parent("a")))
        count.add(event(a_parent("a"), kind="DELETED"))

    await asyncio.wait_for(gone.reach(1), 1)
    with pytest.raises(TimeoutError, match="0 of 1"):
        await alive.reach(1, within_seconds=0.01)


async def test_time_is_that_at_which_the_count_was_reached_and_not_that_of_the_question() -> None:
    count = counter()
    waiting = asyncio.ensure_future(count.reach(2))
    await asyncio.sleep(0)

    count.add(event(a_parent("a")))
    count.add(event(a_parent("b")))
    reached_at = await waiting
    later = await count.reach(2)

    assert reached_at <= later


async def test_reset_counts_from_zero_again() -> None:
    count = counter()
    count.add(event(a_parent("a")))

    count.reset()

    with pytest.raises(TimeoutError, match="0 of 1"):
        await count.reach(1, within_seconds=0.01)


async def test_no_more_jobs_are_in_flight_than_there_are_clients() -> None:
    in_flight, most = 0, 0

    async def job() -> None:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1

    await in_parallel((job() for _ in range(20)), clients=3)

    assert (in_flight, most) == (0, 3)


async def test_job_that_fails_ends_the_load() -> None:
    async def job() -> None:
        raise LookupError("no such parent")

    with pytest.raises(ExceptionGroup):
        await in_parallel([job()], clients=2)
