"""A "cluster" that is a table of numbers, and the judge of those who work on it.

Each row has a `desired` number, which changes, and an `applied` one, which workers write; `rv` counts the changes of the whole table. Watchers
list and watch it, a little late. Workers tell when they begin, write and end, and the judge notes what may not be:

- **overlap**: two live workers in one row, unless the first had it for longer than a lease, or stood still in between;
- **late write**: a write by a worker after another began in the row (with the same excuse: it stood still between its look at the lease
  and the write);
- **stale begin**: a view from before the last finished write, unless the watcher, or NATS with the report, was hit since then.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from metaloop.devkit.ports import free_port


@dataclass(slots=True, eq=False)
class Stay:
    """One sync as the table sees it."""

    pid: int
    lease: str
    began: float


@dataclass(slots=True, eq=False)
class Row:
    """One parent."""

    desired: int = 0
    applied: int = 0
    rv: int = 0
    stays: list[Stay] = field(default_factory=list[Stay])
    """Syncs under way, in order."""
    latest: str = ""
    """The lease that began last."""
    written_rv: int = 0
    """The version of the last write whose sync ended."""
    written_at: float = 0.0

    def public(self) -> dict[str, int]:
        """What a watch tells of it."""
        return {"desired": self.desired, "applied": self.applied, "rv": self.rv}


class Truth:
    """The table, served over TCP."""

    def __init__(self, keys: int, *, lease_seconds: float, lag_seconds: float = 0.1) -> None:
        self.rows = {f"p{number}": Row() for number in range(keys)}
        self.counts: Counter[str] = Counter()
        self.stood_still: dict[int, float] = {}
        """When each worker was stalled last, or went on."""
        self.hit_at = 0.0
        """When the watcher or NATS was hit last."""
        self.port = free_port()
        self._lease_seconds = lease_seconds
        self._lag_seconds = lag_seconds
        self._rv = 0
        self._told_until = 0.0
        """When the last event made so far is told."""
        self._watchers: set[asyncio.StreamWriter] = set()
        self.watching = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serves for the length of the block."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**24)
        try:
            yield
        finally:
            server.close()

    def change(self, name: str) -> None:
        """Somebody desires something else of a row."""
        row = self.rows[name]
        row.desired += 1
        self.counts["changes"] += 1
        self._touch(name, row)

    def tell_watchers(self, event: dict[str, object]) -> None:
        """Send an event at once."""
        for writer in self._watchers:
            writer.write(json.dumps(event).encode() + b"\n")

    @property
    def unequal(self) -> list[str]:
        """The rows that aren't as desired."""
        return [name for name, row in self.rows.items() if row.applied != row.desired]

    def _touch(self, name: str, row: Row) -> None:
        self._rv += 1
        row.rv = self._rv
        event = {"type": "row", "name": name, "row": row.public()}
        loop = asyncio.get_running_loop()
        # Late, but never out of order: timers of one and the same time fire in any.
        self._told_until = max(self._told_until + 1e-6, loop.time() + random.random() * self._lag_seconds)
        for writer in tuple(self._watchers):
            loop.call_at(self._told_until, self._send, writer, event)

    def _send(self, writer: asyncio.StreamWriter, event: dict[str, object]) -> None:
        if writer in self._watchers:
            writer.write(json.dumps(event).encode() + b"\n")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = json.loads(await reader.readline())
        try:
            if hello["role"] == "watcher":
                await self._serve_watcher(reader, writer)
            else:
                await self._serve_worker(hello["pid"], reader, writer)
        except (ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _serve_watcher(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for name, row in self.rows.items():
            event = {"type": "row", "name": name, "row": row.public(), "class": "RESYNC"}
            writer.write(json.dumps(event).encode() + b"\n")
        writer.write(b'{"type":"listed"}\n')
        self._watchers.add(writer)
        self.watching.set()
        try:
            while await reader.readline():
                pass
        finally:
            self._watchers.discard(writer)

    async def _serve_worker(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                message = json.loads(line)
                row = self.rows[message["name"]]
                rv = getattr(self, f"_{message['type']}")(row, pid, message)
                writer.write(json.dumps({"id": message["id"], "rv": rv}).encode() + b"\n")
        finally:
            for row in self.rows.values():
                row.stays = [stay for stay in row.stays if stay.pid != pid]

    def _begin(self, row: Row, pid: int, message: dict[str, object]) -> int:
        now = time.monotonic()
        self.counts["syncs"] += 1
        for stay in row.stays:
            excused = now - stay.began >= self._lease_seconds - 0.1 or self._stood_still_since(stay)
            what = (
                f"{message['lease']} of {pid} began in {message['name']}, where {stay.lease} of {stay.pid} was for {now - stay.began:.2f} s"
            )
            self._judge("overlap", what, excused=excused)
        if int(str(message["rv"])) < row.written_rv:
            excused = self.hit_at > row.written_at - 1.0
            what = f"{message['lease']} began in {message['name']} with {message['rv']}, {row.written_rv} was written {now - row.written_at:.2f} s before"
            self._judge("stale begin", what, excused=excused)
        row.latest = str(message["lease"])
        row.stays.append(Stay(pid, row.latest, now))
        return 0

    def _write(self, row: Row, pid: int, message: dict[str, object]) -> int:
        lease = message["lease"]
        if lease != row.latest:
            stay = next(stay for stay in row.stays if stay.lease == lease)
            what = f"{lease} of {pid} wrote {message['name']} {time.monotonic() - stay.began:.2f} s after it began, {row.latest} had begun"
            self._judge("late write", what, excused=self._stood_still_since(stay))
        self.counts["writes"] += 1
        row.applied = int(str(message["applied"]))
        self._touch(str(message["name"]), row)
        return row.rv

    def _end(self, row: Row, _: int, message: dict[str, object]) -> int:
        row.stays = [stay for stay in row.stays if stay.lease != message["lease"]]
        if message["wrote"]:
            row.written_rv, row.written_at = int(str(message["wrote"])), time.monotonic()
        return 0

    def _judge(self, fault: str, what: str, *, excused: bool) -> None:
        self.counts[f"{fault} excused" if excused else fault.upper()] += 1
        if not excused:
            print(
                f"{time.monotonic():.3f} {fault}: {what}; last blow to watcher or NATS {time.monotonic() - self.hit_at:.2f} s ago",
                flush=True,
            )

    def _stood_still_since(self, stay: Stay) -> bool:
        return self.stood_still.get(stay.pid, 0.0) >= stay.began - 1.0
