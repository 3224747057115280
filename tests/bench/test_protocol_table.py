"""The table that the job protocol is judged by: what it takes for a violation, and what it excuses."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
import pytest_asyncio

from bench.protocol.table import Table
from metaloop.common.testing.polling import eventually

PID, OTHER = 1, 2
LEASE_SECONDS = 5.0


class Worker:
    """A worker's connection to the table."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pid: int) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = count()
        self.say({"role": "worker", "pid": pid})

    def say(self, message: dict[str, object]) -> None:
        """Send a message."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def tell(self, kind: str, **fields: object) -> int:
        """Announce something about p0; the version that the table answers with."""
        number = next(self._numbers)
        self.say({"id": number, "type": kind, "name": "p0", **fields})
        answer = json.loads(await self._reader.readline())
        assert answer["id"] == number
        return answer["rv"]

    async def sync(self, lease: str, *, rv: int, applied: int = 1) -> int:
        """A whole sync that writes; the version of its write."""
        await self.tell("begin", lease=lease, rv=rv)
        written = await self.tell("write", lease=lease, applied=applied)
        await self.tell("end", lease=lease, wrote=written)
        return written


@pytest_asyncio.fixture
async def table() -> AsyncIterator[Table]:
    table = Table(2, lease_seconds=LEASE_SECONDS, lag_seconds=0.0)
    async with table.serving():
        yield table


@asynccontextmanager
async def connected(table: Table) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection, for as long as the block lasts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", table.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def working(table: Table, pid: int = PID) -> AsyncIterator[Worker]:
    """A worker, for as long as the block lasts."""
    async with connected(table) as (reader, writer):
        yield Worker(reader, writer, pid)


async def test_sync_in_its_turn_is_no_violation(table: Table) -> None:
    table.change("p0")

    async with working(table) as worker:
        written = await worker.sync("one", rv=table.rows["p0"].rv)
        await worker.sync("two", rv=written, applied=1)

    assert table.violations == []
    assert (table.counts["syncs"], table.counts["writes"], table.unequal) == (2, 2, [])


async def test_two_workers_in_one_row_overlap(table: Table) -> None:
    async with working(table) as first, working(table, OTHER) as second:
        await first.tell("begin", lease="one", rv=0)
        await second.tell("begin", lease="two", rv=0)

    assert table.violations == ["OVERLAP"]


async def test_overlap_with_a_worker_that_was_stalled_is_excused(table: Table) -> None:
    async with working(table) as first, working(table, OTHER) as second:
        await first.tell("begin", lease="one", rv=0)
        table.stalled_at[PID] = asyncio.get_running_loop().time() + 1_000_000
        await second.tell("begin", lease="two", rv=0)

    assert table.violations == []
    assert table.counts["overlap excused"] == 1


async def test_worker_that_went_away_is_in_no_row_any_more(table: Table) -> None:
    async with working(table) as first:
        await first.tell("begin", lease="one", rv=0)
    await eventually(lambda: not table.rows["p0"].running)
    async with working(table, OTHER) as second:
        await second.tell("begin", lease="two", rv=0)

    assert table.violations == []


async def test_write_after_another_began_is_late(table: Table) -> None:
    async with working(table) as first, working(table, OTHER) as second:
        await first.tell("begin", lease="one", rv=0)
        await second.tell("begin", lease="two", rv=0)
        await first.tell("write", lease="one", applied=1)

    assert "LATE WRITE" in table.violations


@pytest.mark.parametrize(("is_excused", "counted"), [(False, "STALE BEGIN"), (True, "stale begin excused")])
async def test_sync_that_begins_with_a_view_from_before_the_last_write_is_stale(table: Table, *, is_excused: bool, counted: str) -> None:
    async with working(table) as worker:
        await worker.sync("one", rv=0)
        if is_excused:
            table.fault_at = table.rows["p0"].written_at
        await worker.tell("begin", lease="two", rv=0)

    assert table.counts[counted] == 1


async def test_rows_are_unequal_until_their_desired_number_is_applied(table: Table) -> None:
    table.change("p0")
    before = table.unequal

    async with working(table) as worker:
        await worker.sync("one", rv=table.rows["p0"].rv, applied=1)

    assert (before, table.unequal) == (["p0"], [])


async def test_watcher_lists_all_rows_and_then_sees_each_change(table: Table) -> None:
    async with connected(table) as (reader, writer):
        writer.write(b'{"role": "watcher"}\n')
        listed = [json.loads(await reader.readline()) for _ in range(3)]
        await table.watching.wait()
        table.change("p1")
        event = json.loads(await reader.readline())

    assert [each.get("name") for each in listed] == ["p0", "p1", None]
    assert listed[-1] == {"type": "listed"}
    assert (event["name"], event["row"]["desired"]) == ("p1", 1)


async def test_changes_are_seen_in_their_order(table: Table) -> None:
    async with connected(table) as (reader, writer):
        writer.write(b'{"role": "watcher"}\n')
        for _ in range(3):
            await reader.readline()
        await table.watching.wait()

        for _ in range(20):
            table.change("p0")
        versions = [json.loads(await reader.readline())["row"]["rv"] for _ in range(20)]

    assert versions == sorted(versions)
