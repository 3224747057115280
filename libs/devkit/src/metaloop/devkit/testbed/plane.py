"""A control plane for tests that need nothing else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from metaloop.devkit.assets import ensure
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.workdir import run_folder


@asynccontextmanager
async def bare_plane() -> AsyncIterator[ControlPlane]:
    """A control plane that knows nothing of Metaloop, with its data in a folder of its own, for as long as the block lasts."""
    with run_folder() as folder:
        async with ControlPlane.start(await ensure(), folder) as plane:
            yield plane
