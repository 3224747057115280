"""What every test shares: one real control plane, and property tests without deadlines."""

from collections.abc import AsyncIterator

import pytest_asyncio
from hypothesis import HealthCheck, settings

from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.plane import bare_plane

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_plane() -> AsyncIterator[ControlPlane]:
    """A control plane for all tests of this process that need nothing more, each in a namespace of its own."""
    async with bare_plane() as plane:
        yield plane
