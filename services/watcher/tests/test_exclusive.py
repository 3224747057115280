"""Watchers of one shard on a real bus: only one serves it, with an election or without."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from metaloop.common.bus.nats.connection import connected
from metaloop.common.bus.nats.stream import StreamSettings
from metaloop.common.bus.nats.watcher import NatsWatcherLink
from metaloop.common.testing.builders import SHARD
from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.devkit.testbed.tcpproxy import TcpProxy
from metaloop.watcher.errors import NotAlone
from metaloop.watcher.exclusive import ShardExclusivity

SILENT_SECONDS = 0.8
"""Longer than a watcher listens before it begins."""


class Server:
    """A watcher, as far as it serves its shard or not."""

    def __init__(self, exclusivity: ShardExclusivity) -> None:
        self.exclusivity = exclusivity
        self.serves = False
        self.gave_way = ""
        """Why it ended by itself."""
        self._is_stopped = asyncio.Event()

    def stop(self) -> None:
        """End it; it says nothing any more."""
        self._is_stopped.set()

    async def live(self) -> None:
        """Serve until it is stopped."""
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(self.run())
            await self._is_stopped.wait()
            running.cancel()

    async def run(self) -> None:
        """Serve the shard as soon and as long as it may."""
        try:
            async with self.exclusivity.serving():
                self.serves = True
                await self.exclusivity.run()
        except NotAlone as problem:
            self.gave_way = str(problem)
        finally:
            self.serves = False

    def problem(self) -> str:
        """Why it isn't ready, as far as it knows."""
        try:
            self.exclusivity.check_alone()
        except NotAlone as problem:
            return str(problem)
        return ""


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker.start(tmp_path) as broker:
        yield broker


@asynccontextmanager
async def server(url: str, name: str, *, is_elected: bool = False, shard: str = SHARD) -> AsyncIterator[Server]:
    """A watcher with a connection of its own, for the length of the block."""
    async with connected(url, name=name) as connection, asyncio.TaskGroup() as tasks:
        link = NatsWatcherLink(connection, StreamSettings(), shard=shard)
        server = Server(ShardExclusivity(link, identity=name, is_elected=is_elected, leads=lambda: True))
        tasks.create_task(server.live())
        yield server
        server.stop()


async def test_where_nobody_else_is_a_watcher_serves(broker: Broker):
    async with server(broker.url, "one") as one:
        await eventually(lambda: one.serves)

    assert one.problem() == ""


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["in order", "in reverse"])
async def test_second_watcher_waits_and_says_for_whom(broker: Broker, names: tuple[str, str]):
    async with server(broker.url, names[0]) as first:
        await eventually(lambda: first.serves)

        async with server(broker.url, names[1]) as second:
            await eventually(lambda: bool(second.problem()))
            await asyncio.sleep(SILENT_SECONDS)
            assert (first.serves, second.serves) == (True, False)

    assert f"the watcher {names[0]} serves this shard" in second.problem()
    assert "METALOOP_LEADER_ELECTION" in second.problem()


async def test_second_watcher_serves_when_the_first_is_gone(broker: Broker):
    async with server(broker.url, "one") as first:
        await eventually(lambda: first.serves)
        async with server(broker.url, "other") as second:
            await eventually(lambda: bool(second.problem()))

            first.stop()

            await eventually(lambda: second.serves)
            assert second.problem() == ""


async def test_of_many_that_start_at_once_one_serves(broker: Broker):
    async with server(broker.url, "a") as a, server(broker.url, "b") as b, server(broker.url, "c") as c:
        await eventually(lambda: [bool(each.problem()) for each in (a, b, c)].count(True) == 2)
        await eventually(lambda: any(each.serves for each in (a, b, c)))
        await asyncio.sleep(SILENT_SECONDS)

        assert [each.serves for each in (a, b, c)].count(True) == 1


async def test_watchers_of_other_shards_do_not_matter(broker: Broker):
    async with server(broker.url, "one") as one, server(broker.url, "other", shard="elsewhere") as other:
        await eventually(lambda: one.serves and other.serves)


async def test_watcher_without_election_does_not_begin_beside_an_elected_leader(broker: Broker):
    async with server(broker.url, "z", is_elected=True) as leader, server(broker.url, "a") as other:
        await eventually(lambda: leader.serves and bool(other.problem()))

        assert not other.serves


async def test_watcher_without_election_ends_when_a_leader_is_elected(broker: Broker):
    async with server(broker.url, "a") as one:
        await eventually(lambda: one.serves)

        async with server(broker.url, "z", is_elected=True) as leader:
            await eventually(lambda: leader.serves)
            await eventually(lambda: "the watcher z serves this shard" in one.gave_way)


async def test_leader_begins_at_once_beside_a_former_one_that_does_not_lead_any_more(broker: Broker):
    async with server(broker.url, "a", is_elected=True) as former, server(broker.url, "b", is_elected=True) as leader:
        await eventually(lambda: leader.serves)
        await asyncio.sleep(SILENT_SECONDS)

        assert (former.gave_way, leader.gave_way) == ("", "")


async def test_of_two_that_meet_after_a_partition_one_gives_way(broker: Broker):
    async with TcpProxy.before(broker.url) as proxy, server(proxy.instead_of(broker.url), "one") as one:
        await eventually(lambda: one.serves)
        proxy.partition()
        async with server(broker.url, "other") as other:
            await eventually(lambda: other.serves)

            proxy.heal()

            await eventually(lambda: bool(one.gave_way) or bool(other.gave_way))
            assert [one.serves, other.serves].count(True) == 1
