from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metaloop.common.bus.links import WatcherLink, WorkerLink

from .hands import Watcher
from .subject import BusUnderTest, MemoryBus, NatsBus

IMPLEMENTATIONS = {"nats": NatsBus.start, "memory": MemoryBus.start}
"""Each of them passes the tests of this folder; those in the folders below concern one of them."""


@pytest.fixture(params=IMPLEMENTATIONS)
async def bus(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BusUnderTest]:
    async with IMPLEMENTATIONS[request.param](tmp_path) as bus:
        yield bus


@pytest.fixture
async def watcher(bus: BusUnderTest) -> AsyncIterator[Watcher]:
    async with Watcher(bus.watcher).serving() as watcher:
        yield watcher


@pytest.fixture
def worker(bus: BusUnderTest) -> WorkerLink:
    return bus.worker


@pytest.fixture
def standby(bus: BusUnderTest) -> WatcherLink:
    """The link of another watcher of the same shard."""
    return bus.other_watcher
