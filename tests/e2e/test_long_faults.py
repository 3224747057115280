"""One long fault at a time while parents change: whatever stands still or is slow, in the end all is right.

Parents want children whose names are random, so that a hook which is shown a state from before its own writes would
leave a second child of an index behind. After each fault all parents converge within the time given here, no hook was
ever asked twice at once about one parent, no child was doubled, and no service has ended by itself.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.json import dumps, loads
from metaloop.devkit.processes import Daemon
from metaloop.devkit.testbed.chaos import Chaos, ChaosOptions, ChaosReport
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.network import Network
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

pytestmark = [pytest.mark.chaos, pytest.mark.e2e]

_STALL_SECONDS = 20.0
"""Longer than any lease, and than the longest wait for an answer."""
_OUTAGE_SECONDS = 60.0
_AROUND_SECONDS = 3.0
"""So long before and after a fault parents are changed, too: nobody changes them without an API server."""
_FULL_SECONDS = 20.0
_SLOW_SECONDS = 30.0
_DELAY_SECONDS = 0.2
_SKEW_SECONDS = 3600.0
_STORE_BYTES = 16 * 1024 * 1024
_FILLER = {"name": "FILLER", "subjects": ["filler"], "storage": "file"}
_FILLER_BYTES = 256 * 1024
_JOB_BYTES = 512
_REFILLED_SECONDS = 0.1
_OPTIONS = ChaosOptions(seed=7, parents=40, converged_seconds=60.0)
_TWO_WATCHERS = {"LEADER_ELECTION": "true", "LEADER_LEASE_SECONDS": "6"}
_PROCESSES = (
    "watcher", "watcher-1", "hookgateway", "reconciler-0", "reconciler-1",
    "nats-server", "kube-apiserver", "etcd", "kube-controller-manager",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Range:
    """A running Metaloop with a proxy in each link, and a broker whose store is small."""

    lab: Lab
    network: Network

    @property
    def services(self) -> list[Daemon]:
        """The processes that are ours."""
        return [service.daemon for service in self.lab.stack.services]

    def process(self, name: str) -> Daemon:
        """A process by its name."""
        platform = self.lab.platform
        every = [*self.services, platform.broker.daemon, *platform.plane.daemons]
        return next(daemon for daemon in every if daemon.name == name)

    async def withstands(self, fault: Callable[[], Awaitable[object]], *, name: str) -> ChaosReport:
        """What came of a fault; raises AssertionError where anything is not as it has to be."""
        story = Story(lab=self.lab, name=name)
        await story.begin()
        before = {daemon.name: daemon.pid for daemon in self.services}

        async def amid_changes() -> None:
            await asyncio.sleep(_AROUND_SECONDS)
            await fault()
            await asyncio.sleep(_AROUND_SECONDS)

        try:
            report = await Chaos(story, _OPTIONS).during(amid_changes)
        finally:
            self.network.heal()
            await story.end()
        assert (report.overlaps, report.duplicates) == ([], [])
        assert {daemon.name: daemon.pid for daemon in self.services} == before
        assert report.changes > 0
        return report


@asynccontextmanager
async def ranged(assets: Path, *, programs: dict[str, tuple[str, ...]] | None = None) -> AsyncIterator[Range]:
    """Everything running, in a cluster of its own, with two watchers and two reconcilers."""
    with run_folder() as folder:
        async with (
            Platform.start(assets, folder, store_bytes=_STORE_BYTES) as platform,
            Network.around(platform, services=5) as network,
            Webhook.serve() as webhook,
        ):
            await install_parent(platform.cluster, THINGS)
            async with network.stack(watchers=({}, {}), settings=_TWO_WATCHERS, programs=programs) as stack:
                yield Range(Lab(platform=platform, stack=stack, webhook=webhook), network)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(assets: Path) -> AsyncIterator[Range]:
    async with ranged(assets) as place:
        yield place


@pytest.mark.parametrize("name", _PROCESSES)
async def test_a_process_that_stands_still_for_long_costs_time_only(place: Range, name: str) -> None:
    victim = place.process(name)

    async def stall() -> None:
        victim.pause()
        try:
            await asyncio.sleep(_STALL_SECONDS)
        finally:
            victim.resume()

    await place.withstands(stall, name=f"stall-{name}")


@pytest.mark.parametrize("name", ["nats-server", "kube-apiserver"])
async def test_a_minute_without_a_server_costs_time_only(place: Range, name: str) -> None:
    victim = place.process(name)

    async def outage() -> None:
        await victim.kill()
        await asyncio.sleep(_OUTAGE_SECONDS)
        await victim.start()

    await place.withstands(outage, name=f"outage-{name}")


@pytest.mark.parametrize("link", ["broker", "gateway", "api-server"])
async def test_a_minute_without_a_link_costs_time_only(place: Range, link: str) -> None:
    async def partition() -> None:
        place.network.links[link].partition()
        await asyncio.sleep(_OUTAGE_SECONDS)
        place.network.links[link].heal()

    await place.withstands(partition, name=f"partition-{link}")


async def test_a_full_disk_of_the_broker_costs_time_only(place: Range) -> None:
    async def fill() -> None:
        async with full_disk(place.lab.platform.broker.url):
            await asyncio.sleep(_FULL_SECONDS)

    await place.withstands(fill, name="full-disk")


async def test_a_slow_network_costs_time_only(place: Range) -> None:
    async def slow() -> None:
        for link in place.network.links.values():
            link.delay_seconds = _DELAY_SECONDS
        await asyncio.sleep(_SLOW_SECONDS)

    await place.withstands(slow, name="slow-network")


async def test_wall_clocks_that_jump_hours_apart_cost_time_only(assets: Path) -> None:
    skewed = str(Path(__file__).with_name("skewed.py"))
    programs = {
        "watcher": (skewed, "watcher", str(_SKEW_SECONDS)),
        "reconciler": (skewed, "reconciler", str(-_SKEW_SECONDS)),
        "hookgateway": (skewed, "hookgateway", str(2 * _SKEW_SECONDS)),
    }
    async with ranged(assets, programs=programs) as place:
        leader = place.process("watcher")

        async def stall_a_watcher() -> None:
            leader.pause()
            await asyncio.sleep(_STALL_SECONDS)
            leader.resume()

        await place.withstands(stall_a_watcher, name="skewed")


@asynccontextmanager
async def full_disk(url: str) -> AsyncIterator[None]:
    """Another stream takes all room of the broker's store, also what jobs leave, for the length of the block."""
    async with connected(url, name="filler") as connection, asyncio.TaskGroup() as tasks:
        assert await _answered(connection, "$JS.API.STREAM.CREATE.FILLER", dumps(_FILLER))
        await _fill(connection, largest_bytes=_FILLER_BYTES)
        filling = tasks.create_task(_keep_full(connection))
        yield
        assert not filling.done()
        filling.cancel()
        assert await _answered(connection, "$JS.API.STREAM.DELETE.FILLER", b"")


async def _keep_full(connection: Connection) -> None:
    while True:
        await _fill(connection, largest_bytes=_JOB_BYTES)
        await asyncio.sleep(_REFILLED_SECONDS)


async def _fill(connection: Connection, *, largest_bytes: int) -> None:
    """Return when the store has no room, not even for the shortest message."""
    size = largest_bytes
    while size:
        size = size if await _answered(connection, "filler", b"x" * size) else size // 2


async def _answered(connection: Connection, subject: str, body: bytes) -> bool:
    """Whether the broker did what it was asked for."""
    return "error" not in loads(await connection.request(subject, body, timeout_seconds=5.0))
