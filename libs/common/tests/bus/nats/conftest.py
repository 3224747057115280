from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.devkit.broker import Broker


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with Broker.start(tmp_path) as broker:
        yield broker


@pytest.fixture
async def connection(broker: Broker) -> AsyncIterator[Connection]:
    async with connected(broker.url, name="test") as connection:
        yield connection
