"""`python -m bench.chaos`: kills and stalls of every process at random, until nothing is lost and nothing doubled, or something is."""

import asyncio
import random
from typing import Annotated

import typer

from metaloop.devkit.assets import ensure
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.chaos import Chaos, ChaosOptions, ChaosReport
from metaloop.devkit.testbed.lab import Ground, Lab, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

_LED = {"LEADER_ELECTION": "true", "LEADER_LEASE_SECONDS": "6"}


def main(  # noqa: PLR0913 - its options
    *,
    seed: Annotated[int | None, typer.Option(help="Makes the same choices again; a new one is drawn without it.")] = None,
    parents: Annotated[int, typer.Option(help="How many parents.", min=1)] = 200,
    seconds: Annotated[float, typer.Option(help="How long the mischief lasts.", min=1)] = 600,
    runs: Annotated[int, typer.Option(help="How many runs, each from a seed of its own.", min=1)] = 1,
    api_server: Annotated[bool, typer.Option(help="Kill and stall the API server too.")] = True,
    late: Annotated[float, typer.Option(help="How many seconds late every watch event is.", min=0)] = 0.2,
    standbys: Annotated[int, typer.Option(help="How many watchers stand by for the one that leads.", min=0)] = 1,
) -> None:
    """Torment a running Metaloop."""
    first = random.randrange(1_000_000) if seed is None else seed
    for number in range(runs):
        options = ChaosOptions(seed=first + number, parents=parents, duration_seconds=seconds, with_api_server=api_server)
        typer.echo(f"seed {options.seed}: {parents} parents, {seconds:g} s")
        report = asyncio.run(_run(options, late_seconds=late, standbys=standbys))
        _tell(report)
        if report.overlaps or report.duplicates:
            raise typer.Exit(1)


async def _run(options: ChaosOptions, *, late_seconds: float, standbys: int) -> ChaosReport:
    with run_folder() as folder:
        async with (
            Ground.start(await ensure(), folder) as ground,
            ApiProxy.before(ground.plane, folder) as proxy,
            Webhook.serve() as webhook,
        ):
            await install_parent(ground.cluster, THINGS)
            way = proxy.kubeconfig_path if late_seconds else None
            async with ground.stack(kubeconfig=way, watchers=({},) * (1 + standbys), settings=_LED if standbys else None) as stack:
                proxy.watch_delay_seconds = late_seconds
                story = Story(lab=Lab(ground=ground, stack=stack, webhook=webhook), name="chaos")
                await story.begin()
                return await Chaos(story, options).run()


def _tell(report: ChaosReport) -> None:
    acts = ", ".join(f"{act} {count}x" for act, count in sorted(report.acts.items()))
    typer.echo(f"  {acts}")
    typer.echo(
        f"  {report.changes} changes ({report.failed_changes} not taken), {report.hook_calls} hook calls, "
        f"converged {report.converged_after_seconds:.1f} s after the last act"
    )
    for finding in [*report.overlaps, *report.duplicates]:
        typer.echo(f"  {finding}")
    typer.echo(f"  {len(report.overlaps)} overlaps, {len(report.duplicates)} duplicates")


if __name__ == "__main__":
    typer.run(main)
