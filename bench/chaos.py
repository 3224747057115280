"""`python -m bench.chaos`: kills, stalls and parts every process at random; nothing is lost, and nothing done twice."""

import asyncio
import random
from collections.abc import AsyncIterator
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer

from metaloop.devkit.assets import ensure
from metaloop.devkit.stack import Stack
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.chaos import Chaos, ChaosOptions, ChaosReport
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.network import Network
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

_LEADER_ELECTION = {"LEADER_ELECTION": "true", "LEADER_LEASE_SECONDS": "6"}
_WATCH_DELAY_SECONDS = 0.2
_SERVICES = 5
"""Two watchers, a gateway and two reconcilers, at most."""


class Part(StrEnum):
    """A part of the setup that can be left out."""

    API_SERVER = "api-server"
    """Faults of the API server."""
    STANDBY = "standby"
    """A second watcher that takes over when the leader fails."""
    NETWORK = "network"
    """Slow, parted and cut links between the services, the broker and the API server."""
    WATCH_DELAY = "watch-delay"
    """The delay of every watch event."""


def main(
    *,
    seed: Annotated[int | None, typer.Option(help="Make the same choices as an earlier run; a new seed is drawn without it.")] = None,
    parents: Annotated[int, typer.Option(help="How many parents.", min=1)] = 200,
    seconds: Annotated[float, typer.Option(help="How long faults are caused.", min=1)] = 600,
    runs: Annotated[int, typer.Option(help="How many runs, each from a seed of its own.", min=1)] = 1,
    without: Annotated[list[Part] | None, typer.Option(help="Leave this out; may be repeated.")] = None,
) -> None:
    """Cause faults in a running Metaloop. Exits with 1 if hook calls for one parent overlap, or a child is doubled."""
    first = random.randrange(1_000_000) if seed is None else seed
    parts = frozenset(Part) - frozenset(without or ())
    for number in range(runs):
        options = ChaosOptions(seed=first + number, parents=parents, duration_seconds=seconds, with_api_server=Part.API_SERVER in parts)
        typer.echo(f"seed {options.seed}: {parents} parents, {seconds:g} s")
        report = asyncio.run(_run(options, parts))
        _print(report)
        if report.overlaps or report.duplicates:
            raise typer.Exit(1)


async def _run(options: ChaosOptions, parts: AbstractSet[Part]) -> ChaosReport:
    with run_folder() as folder:
        async with (
            Platform.start(await ensure(), folder) as platform,
            ApiProxy.before(platform.plane, folder) as proxy,
            Webhook.serve() as webhook,
            Network.around(
                platform, services=_SERVICES, kubeconfig=proxy.kubeconfig_path if Part.WATCH_DELAY in parts else None
            ) as network,
            _services(network, proxy, parts) as stack,
        ):
            story = Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name="chaos")
            await story.begin()
            return await Chaos(story, replace(options, network=network if Part.NETWORK in parts else None)).run()


@asynccontextmanager
async def _services(network: Network, proxy: ApiProxy, parts: AbstractSet[Part]) -> AsyncIterator[Stack]:
    """The services with their kind of parent installed, for as long as the block lasts."""
    await install_parent(network.platform.cluster, THINGS)
    watchers, settings = (({}, {}), _LEADER_ELECTION) if Part.STANDBY in parts else (({},), None)
    async with network.stack(watchers=watchers, settings=settings) as stack:
        proxy.watch_delay_seconds = _WATCH_DELAY_SECONDS if Part.WATCH_DELAY in parts else 0
        yield stack


def _print(report: ChaosReport) -> None:
    faults = ", ".join(f"{fault} {count}x" for fault, count in sorted(report.faults.items()))
    typer.echo(f"  {faults}")
    typer.echo(
        f"  {report.changes} changes ({report.failed_changes} refused), {report.hook_calls} hook calls, "
        f"converged {report.converged_after_seconds:.1f} s after the last act"
    )
    for finding in [*report.overlaps, *report.duplicates]:
        typer.echo(f"  {finding}")
    typer.echo(f"  {len(report.overlaps)} overlaps, {len(report.duplicates)} duplicates")


if __name__ == "__main__":
    typer.run(main)
