"""`python -m bench [SCENARIO...]`: run scenarios, print each figure beside its bound and the original's, and record them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from bench import report
from bench.figures import Figure
from bench.profiling import summary
from bench.scenarios import SCENARIOS
from bench.scenarios.scale import Scale
from bench.usage import OthersCpu
from metaloop.devkit.assets import ensure


def main(
    scenarios: Annotated[list[str] | None, typer.Argument(help=f"Any of {', '.join(SCENARIOS)}; all of them if none is named.")] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the size: shows that all works, judges nothing.")] = False,
    rounds: Annotated[int, typer.Option(help="Run each scenario so often.", min=1)] = 1,
    profile: Annotated[
        Path | None, typer.Option(help="Sample the services with py-spy, keep the stacks in this folder and print where the CPU goes.")
    ] = None,
    recorded: Annotated[bool, typer.Option("--record/--no-record", help="Keep the figures under bench/results.")] = True,
) -> None:
    """Measure Metaloop on a fresh control plane."""
    names = scenarios or [*SCENARIOS]
    if unknown := set(names) - set(SCENARIOS):
        raise typer.BadParameter(f"no scenario is called {', '.join(sorted(unknown))}")
    if profile:
        profile.mkdir(parents=True, exist_ok=True)
    labels = [name if number == 0 else f"{name} #{number + 1}" for number in range(rounds) for name in names]
    results: dict[str, Sequence[Figure]] = {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        scale = Scale(assets=runner.run(ensure()), divisor=10 if quick else 1, profiles=profile)
        for label in labels:
            others = OthersCpu()
            measured = runner.run(SCENARIOS[label.partition(" ")[0]](scale))
            results[label] = [*measured, Figure(name="other processes of the machine meanwhile", value=others.cores(), unit="cores")]
            report.show(label, results[label])
            for file in sorted(profile.glob("*.raw")) if profile else ():
                typer.echo(summary(file))
    missed = [figure.name for figures in results.values() for figure in figures if figure.verdict == "misses"]
    typer.echo(f"{len(missed)} bounds missed" + "".join(f"\n  {name}" for name in missed) if missed else "all bounds hold")
    if recorded:
        typer.echo(f"recorded in {_relative(report.record(results, quick=quick))}")


def _relative(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


if __name__ == "__main__":
    typer.run(main)
