"""Watchers on a real bus that are told to serve the same controller: one does, and the other when that is over."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metaloop.common.bus.links import WatcherLink
from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.testing.builders import SHARD, controller_id, job_key, sync_report
from metaloop.common.testing.clock import FakeClock
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.entry import Lease
from metaloop.watcher.core.limits import Limits
from metaloop.watcher.handover import OwnershipHandover
from metaloop.watcher.ownership import Ownership
from metaloop.watcher.workqueue import MarkClass, WorkQueue

CONTROLLER = controller_id()
KEY = job_key()
PATIENCE_SECONDS = 10.0
"""By the clocks of the servers, which move only when a test advances them."""
ASKED_WITHIN_SECONDS = 0.5
"""So much real time lets a server ask several times."""


class Server:
    """A watcher, as far as it may serve a controller or not."""

    def __init__(self, link: WatcherLink) -> None:
        self.clock = FakeClock()
        self.queue = WorkQueue(shard=SHARD, cache=Caches(), is_behind=lambda *_: False, limits=Limits(), clock=self.clock)
        self.leads = True
        self.ownership = Ownership(self.queue)
        self.handover = OwnershipHandover(link, self.ownership, self.queue, patience_seconds=PATIENCE_SECONDS)

    def start(self) -> None:
        """The controller came to it, with a parent."""
        self.ownership.started(CONTROLLER)
        self.queue.mark(KEY, MarkClass.CHANGED, "it changed")

    def stop(self) -> None:
        """The controller went."""
        self.queue.forget_controller(CONTROLLER)
        self.ownership.stopped(CONTROLLER)

    def serves(self) -> bool:
        """Whether it hands out the parent; if so, it is in hand from now on."""
        return self.queue.take() is not None and isinstance(self._claim(), Lease)

    def finish(self) -> None:
        """The sync that is in hand ends."""
        entry = self.queue.entry(KEY)
        assert entry is not None
        assert entry.lease is not None
        lease = entry.lease.id
        self.queue.report(sync_report(KEY, lease))
        self.queue.receipt(lease)

    def _claim(self) -> object:
        return self.queue.claim(KEY, worker="worker", slots=1)


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker.start(tmp_path) as broker:
        yield broker


@asynccontextmanager
async def linked(broker: Broker, name: str) -> AsyncIterator[WatcherLink]:
    """A watcher's link with a connection of its own."""
    async with connected(broker.url, name=name) as connection:
        yield NatsWatcherLink(connection, StreamSettings(), shard=SHARD)


@asynccontextmanager
async def server(broker: Broker, name: str) -> AsyncIterator[Server]:
    """A watcher with a connection of its own, that leads for the length of the block."""
    async with linked(broker, name) as link, asyncio.TaskGroup() as tasks:
        server = Server(link)
        running = tasks.create_task(server.handover.run(leads=lambda: server.leads))
        yield server
        running.cancel()


@asynccontextmanager
async def silence(broker: Broker) -> AsyncIterator[None]:
    """An owner of the controller that doesn't answer."""
    async with linked(broker, "silent") as link, link.owning(CONTROLLER, leads=lambda: False):
        yield


async def test_where_nobody_else_is_there_a_controller_is_served_at_once(broker: Broker):
    async with server(broker, "one") as one:
        one.start()

        await eventually(one.serves)


async def test_a_controller_that_moves_is_served_once_what_the_other_has_in_hand_is_over(broker: Broker):
    async with server(broker, "one") as one, server(broker, "other") as other:
        one.start()
        await eventually(one.serves)
        other.start()
        one.stop()
        for _ in range(4):  # longer than a silent one would be waited for
            other.clock.advance(PATIENCE_SECONDS / 2)
            await asyncio.sleep(ASKED_WITHIN_SECONDS)
        assert not other.serves()

        one.finish()

        await eventually(other.serves)


async def test_while_the_other_goes_on_the_controller_is_left_to_it(broker: Broker):
    async with server(broker, "one") as one, server(broker, "other") as other:
        one.start()
        await eventually(one.serves)
        other.start()
        await asyncio.sleep(ASKED_WITHIN_SECONDS)
        one.ownership.started(CONTROLLER)  # with another spec

        other.stop()
        await asyncio.sleep(ASKED_WITHIN_SECONDS)
        one.finish()
        one.start()

        await eventually(one.serves)


async def test_the_end_of_the_other_is_noticed_at_once(broker: Broker):
    async with server(broker, "other") as other:
        async with server(broker, "one") as one:
            one.start()
            await eventually(one.serves)
            other.start()
            await asyncio.sleep(ASKED_WITHIN_SECONDS)
            assert not other.serves()

        await eventually(other.serves)


async def test_who_is_silent_is_waited_for_as_long_as_a_lease_lives(broker: Broker):
    async with silence(broker), server(broker, "other") as other:
        other.start()
        other.clock.advance(0.9 * PATIENCE_SECONDS)
        await asyncio.sleep(ASKED_WITHIN_SECONDS)
        assert not other.serves()

        other.clock.advance(0.1 * PATIENCE_SECONDS)

        await eventually(other.serves)


async def test_who_had_a_controller_for_long_asks_a_silent_one_only_once(broker: Broker):
    """The warm standby of a leader that was stopped: what it knows of has been its own shard's for long."""
    async with silence(broker), linked(broker, "standby") as link:
        standby = Server(link)
        standby.start()
        standby.clock.advance(PATIENCE_SECONDS)

        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(standby.handover.run(leads=lambda: True))
            await eventually(standby.serves)
            running.cancel()


async def test_who_leads_no_more_answers_nobody(broker: Broker):
    async with server(broker, "one") as one, server(broker, "other") as other:
        one.start()
        await eventually(one.serves)
        one.leads = False
        other.start()
        other.clock.advance(PATIENCE_SECONDS)

        await eventually(other.serves)
