"""A control plane for tests that need no more than that."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metaloop.devkit.assets import ensure
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.workdir import run_folder


@asynccontextmanager
async def bare_plane() -> AsyncIterator[ControlPlane]:
    """A control plane without Metaloop's CRDs, for as long as the block lasts; its data are in a folder of its own."""
    with run_folder() as folder:
        async with ControlPlane.start(await ensure(), folder) as plane:
            yield plane
