"""`python -m bench.chaos`: kills and stalls of every process at random, until nothing is lost and nothing doubled, or something is."""

import asyncio
import random
from typing import Annotated

import typer

from metaloop.devkit.assets import ensure
from metaloop.devkit.testbed.chaos import Chaos, ChaosOptions, ChaosReport
from metaloop.devkit.testbed.lab import Lab, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.workdir import run_folder


def main(
    *,
    seed: Annotated[int | None, typer.Option(help="Makes the same choices again; a new one is drawn without it.")] = None,
    parents: Annotated[int, typer.Option(help="How many parents.", min=1)] = 200,
    seconds: Annotated[float, typer.Option(help="How long the mischief lasts.", min=1)] = 60,
    runs: Annotated[int, typer.Option(help="How many runs, each from a seed of its own.", min=1)] = 1,
    api_server: Annotated[bool, typer.Option(help="Kill and stall the API server too.")] = False,
) -> None:
    """Torment a running Metaloop."""
    first = random.randrange(1_000_000) if seed is None else seed
    for number in range(runs):
        options = ChaosOptions(seed=first + number, parents=parents, duration_seconds=seconds, with_api_server=api_server)
        typer.echo(f"seed {options.seed}: {parents} parents, {seconds:g} s")
        report = asyncio.run(_run(options))
        _tell(report)
        if report.overlaps or report.duplicates:
            raise typer.Exit(1)


async def _run(options: ChaosOptions) -> ChaosReport:
    with run_folder() as folder:
        async with Lab.start(await ensure(), folder) as lab:
            await install_parent(lab.cluster, THINGS)
            story = Story(lab=lab, name="chaos")
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
