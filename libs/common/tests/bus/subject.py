"""The bus as the conformance tests see it: links to one broker, and what may happen to that broker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Protocol

from metaloop.common.bus.links import WatcherLink, WorkerLink
from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.bus.nats.worker import NatsWorkerLink
from metaloop.common.testing.builders import SHARD
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.simulation.bus.broker import Broker as MemoryBroker
from metaloop.simulation.bus.links import PART_BYTES, MemoryWatcherLink, MemoryWorkerLink
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.network import Network, Port

ACK_WAIT_SECONDS = 2.0


class BusUnderTest(Protocol):
    """A broker whose job stream is there. Jobs come back after `ACK_WAIT_SECONDS`."""

    large_bytes: int
    """More than a message can hold."""
    worker: WorkerLink
    other_worker: WorkerLink
    watcher: WatcherLink
    """The link of the watcher of `SHARD`."""
    other_watcher: WatcherLink
    """The link of another watcher of `SHARD`, which stands by."""

    def watcher_of(self, shard: str) -> WatcherLink:
        """The link of the watcher of another shard."""
        ...

    async def stop(self) -> None:
        """The broker dies. All links are disconnected when this returns."""
        ...

    async def restart(self) -> None:
        """The broker is back, with the jobs that it stored. All links are connected when this returns."""
        ...

    async def wipe(self) -> None:
        """The broker dies and is back, with an empty store and without a stream.

        All links are connected when this returns.
        """
        ...


class NatsBus:
    """A real nats-server; each link has a connection of its own."""

    def __init__(self, broker: Broker, connections: list[Connection]) -> None:
        self._broker = broker
        self._connections = connections
        self._stream = StreamSettings(ack_wait_seconds=ACK_WAIT_SECONDS)
        ours, others, theirs, still_others = connections
        self.large_bytes = 2 * ours.max_payload + 12_345
        self.worker: WorkerLink = NatsWorkerLink(theirs, self._stream)
        self.other_worker: WorkerLink = NatsWorkerLink(still_others, self._stream)
        self.watcher: WatcherLink = NatsWatcherLink(ours, self._stream, shard=SHARD)
        self.other_watcher: WatcherLink = NatsWatcherLink(others, self._stream, shard=SHARD)

    @classmethod
    @asynccontextmanager
    async def start(cls, folder: Path) -> AsyncIterator["NatsBus"]:
        """A bus with a server of its own, for the length of the block."""
        async with (
            Broker.start(folder) as broker,
            connected(broker.url, name="watcher") as ours,
            connected(broker.url, name="other watcher") as others,
            connected(broker.url, name="worker") as theirs,
            connected(broker.url, name="other worker") as still_others,
        ):
            bus = cls(broker, [ours, others, theirs, still_others])
            await bus.watcher.ensure_stream()
            yield bus

    def watcher_of(self, shard: str) -> WatcherLink:
        return NatsWatcherLink(self._connections[1], self._stream, shard=shard)

    async def stop(self) -> None:
        await self._broker.kill()
        await eventually(lambda: not any(connection.is_connected for connection in self._connections))

    async def restart(self) -> None:
        await self._broker.restart()
        await self._is_connected()

    async def wipe(self) -> None:
        await self.stop()
        await self._broker.wipe()
        await self._is_connected()

    async def _is_connected(self) -> None:
        await eventually(lambda: all(connection.is_connected for connection in self._connections))


class MemoryBus:
    """The simulation's model of the bus, on real time."""

    large_bytes = 2 * PART_BYTES + 123

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._wires = [broker.connect(Port(name)) for name in ("watcher", "other watcher", "worker", "other worker")]
        ours, others, theirs, still_others = self._wires
        self.worker: WorkerLink = MemoryWorkerLink(wire=theirs)
        self.other_worker: WorkerLink = MemoryWorkerLink(wire=still_others)
        self.watcher: WatcherLink = MemoryWatcherLink(wire=ours, shard=SHARD)
        self.other_watcher: WatcherLink = MemoryWatcherLink(wire=others, shard=SHARD)

    @classmethod
    @asynccontextmanager
    async def start(cls, _: Path) -> AsyncIterator["MemoryBus"]:
        """A bus with a broker of its own, for the length of the block."""
        bus = cls(MemoryBroker(Network(random=Random(1), faults=FaultPlan()), ack_wait_seconds=ACK_WAIT_SECONDS))
        await bus.watcher.ensure_stream()
        yield bus

    def watcher_of(self, shard: str) -> WatcherLink:
        return MemoryWatcherLink(wire=self._wires[1], shard=shard)

    async def stop(self) -> None:
        self._broker.stop()

    async def restart(self) -> None:
        self._broker.start()
        await eventually(lambda: all(wire.is_connected for wire in self._wires))

    async def wipe(self) -> None:
        await self.stop()
        self._broker.stream.wipe()
        await self.restart()
