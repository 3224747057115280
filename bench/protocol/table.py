"""A stand-in for the cluster: a table of numbers, and a check on those who work on it.

Each row has a `desired` number, which changes, and an `applied` one, which workers write; `rv` counts the changes of
the whole table. Watchers list and watch it, with a delay. Workers announce when they begin, write and end a sync. These
are violations:

- **overlap**: two live workers in one row, unless the first had it for longer than a lease or was stalled meanwhile;
- **late write**: a worker writes after another one began in the row (excused if it was stalled between its check of the
  lease and the write);
- **stale begin**: a sync begins with a view from before the last finished write (excused if the watcher, or NATS with
  the report, was killed or stalled since then).
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
class RunningSync:
    """One sync under way, as the table sees it."""

    pid: int
    lease: str
    began: float


@dataclass(slots=True, eq=False)
class Row:
    """One parent."""

    desired: int = 0
    applied: int = 0
    rv: int = 0
    running: list[RunningSync] = field(default_factory=list[RunningSync])
    """Syncs under way, in the order in which they began."""
    latest: str = ""
    """The lease of the sync that began last."""
    written_rv: int = 0
    """The version of the last write whose sync ended."""
    written_at: float = 0.0

    def public(self) -> dict[str, int]:
        """What a watch shows of it."""
        return {"desired": self.desired, "applied": self.applied, "rv": self.rv}


class Table:
    """The table, served over TCP."""

    def __init__(self, keys: int, *, lease_seconds: float, lag_seconds: float = 0.1) -> None:
        self.rows = {f"p{number}": Row() for number in range(keys)}
        self.counts: Counter[str] = Counter()
        """How often what happened; violations are in capitals, excused ones are not."""
        self.stalled_at: dict[int, float] = {}
        """When each worker was last stalled or resumed."""
        self.fault_at = 0.0
        """When the watcher or NATS was last killed, stalled or resumed."""
        self.port = free_port()
        self._lease_seconds = lease_seconds
        self._lag_seconds = lag_seconds
        self._rv = 0
        self._sent_until = 0.0
        """When the last event made so far is sent."""
        self._watchers: set[asyncio.StreamWriter] = set()
        self.watching = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve for as long as the block lasts."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=2**24)
        try:
            yield
        finally:
            server.close()

    def change(self, name: str) -> None:
        """Increase the desired number of a row."""
        row = self.rows[name]
        row.desired += 1
        self.counts["changes"] += 1
        self._touch(name, row)

    def send_to_watchers(self, event: dict[str, object]) -> None:
        """Send an event at once."""
        for writer in self._watchers:
            writer.write(json.dumps(event).encode() + b"\n")

    @property
    def unequal(self) -> list[str]:
        """The rows whose applied number is not the desired one."""
        return [name for name, row in self.rows.items() if row.applied != row.desired]

    @property
    def violations(self) -> list[str]:
        """The kinds of violations that were seen."""
        return [name for name in self.counts if name.isupper()]

    def _touch(self, name: str, row: Row) -> None:
        self._rv += 1
        row.rv = self._rv
        event = {"type": "row", "name": name, "row": row.public()}
        loop = asyncio.get_running_loop()
        # Late, but never out of order: timers for the same time fire in any order.
        self._sent_until = max(self._sent_until + 1e-6, loop.time() + random.random() * self._lag_seconds)
        for writer in tuple(self._watchers):
            loop.call_at(self._sent_until, self._send, writer, event)

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
                row.running = [sync for sync in row.running if sync.pid != pid]

    def _begin(self, row: Row, pid: int, message: dict[str, object]) -> int:
        now, name, lease = time.monotonic(), message["name"], str(message["lease"])
        self.counts["syncs"] += 1
        for other in row.running:
            excused = now - other.began >= self._lease_seconds - 0.1 or self._was_stalled_since(other)
            what = f"{lease} of {pid} began in {name}, where {other.lease} of {other.pid} was for {now - other.began:.2f} s"
            self._check("overlap", what, excused=excused)
        if int(str(message["rv"])) < row.written_rv:
            excused = self.fault_at > row.written_at - 1.0
            what = f"{lease} began in {name} with {message['rv']}, {row.written_rv} was written {now - row.written_at:.2f} s before"
            self._check("stale begin", what, excused=excused)
        row.latest = lease
        row.running.append(RunningSync(pid, lease, now))
        return 0

    def _write(self, row: Row, pid: int, message: dict[str, object]) -> int:
        lease, name = message["lease"], str(message["name"])
        if lease != row.latest:
            sync = next(sync for sync in row.running if sync.lease == lease)
            what = f"{lease} of {pid} wrote {name} {time.monotonic() - sync.began:.2f} s after it began, {row.latest} had begun"
            self._check("late write", what, excused=self._was_stalled_since(sync))
        self.counts["writes"] += 1
        row.applied = int(str(message["applied"]))
        self._touch(name, row)
        return row.rv

    def _end(self, row: Row, _: int, message: dict[str, object]) -> int:
        row.running = [sync for sync in row.running if sync.lease != message["lease"]]
        if message["wrote"]:
            row.written_rv, row.written_at = int(str(message["wrote"])), time.monotonic()
        return 0

    def _check(self, violation: str, what: str, *, excused: bool) -> None:
        self.counts[f"{violation} excused" if excused else violation.upper()] += 1
        if not excused:
            since = time.monotonic() - self.fault_at
            print(f"{time.monotonic():.3f} {violation}: {what}; last fault of watcher or NATS {since:.2f} s ago", flush=True)

    def _was_stalled_since(self, sync: RunningSync) -> bool:
        return self.stalled_at.get(sync.pid, 0.0) >= sync.began - 1.0
