"""`metaloop cluster` and `metaloop assets`: a control plane for a developer, and its programs."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import typer

from metaloop.devkit import console
from metaloop.devkit.assets import ensure
from metaloop.devkit.cli.run import forever
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.workdir import run_folder


async def serve() -> None:
    """Run a control plane until a signal to stop."""
    with run_folder() as folder:
        async with own_control_plane(folder) as plane:
            typer.echo(f"export KUBECONFIG={plane.kubeconfig_path}")
            await forever()


async def print_assets() -> None:
    """Find or fetch the programs, and print their folder."""
    typer.echo(str(await ensure()))


@asynccontextmanager
async def own_control_plane(folder: Path) -> AsyncIterator[ControlPlane]:
    """A control plane for as long as the block lasts; its programs are fetched first if they are missing."""
    programs = await ensure()
    async with AsyncExitStack() as stack:
        with console.progress("starting a control plane: etcd, kube-apiserver, kube-controller-manager") as progress:
            plane = await stack.enter_async_context(ControlPlane.start(programs, folder))
            progress.done("control plane ready")
        yield plane
