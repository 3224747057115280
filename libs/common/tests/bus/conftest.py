from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metaloop.common.bus.connect import Bus, connected
from metaloop.common.bus.stream import JobStream, StreamSettings
from metaloop.devkit.broker import Broker


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker.start(tmp_path) as broker:
        yield broker


@pytest.fixture
async def bus(broker: Broker) -> AsyncIterator[Bus]:
    async with connected(broker.url, name="test") as bus:
        yield bus


@pytest.fixture
async def stream(bus: Bus) -> JobStream:
    stream = JobStream(bus, StreamSettings(ack_wait_seconds=1.0))
    await stream.ensure()
    return stream
