"""`python -m bench [SCENARIO...]`: run scenarios, and judge them by ratios within the run and by exact counts."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
import uvloop

from bench import report, results
from bench.calibrate import calibrate
from bench.calibration import Calibration
from bench.comparison import Record, last_of
from bench.figures import Figure, summary_of
from bench.profiling import summary
from bench.run import Run
from bench.scenarios import SCENARIOS
from bench.usage import BUSY_CORES, OtherProcessesCpu
from metaloop.devkit.assets import ensure

_QUICK_DIVISOR = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One invocation: what it runs, and what it has measured so far."""

    names: Sequence[str]
    assets: Path
    quick: bool
    profiles: Path | None
    records: Sequence[Record]
    calibrations: list[Calibration] = field(default_factory=list[Calibration])
    figures: dict[str, list[list[Figure]]] = field(default_factory=dict[str, list[list[Figure]]])
    """The figures of each run, by scenario."""

    async def run_once(self) -> None:
        """Calibrate, and run each scenario once."""
        calibration = await calibrate(self.assets)
        self.calibrations.append(calibration)
        typer.echo(report.calibration_text(calibration))
        run = Run(
            assets=self.assets,
            calibration=calibration,
            divisor=_QUICK_DIVISOR if self.quick else 1,
            profiles=self.profiles,
        )
        for name in self.names:
            await self._measure(name, run)
        typer.echo(report.steadiness_text(calibration, await calibrate(self.assets)))

    async def _measure(self, name: str, run: Run) -> None:
        others = OtherProcessesCpu()
        measured = await SCENARIOS[name](run)
        cores = others.cores()
        figures = [*measured, Figure(name="CPU of processes outside the bench", value=cores, unit="cores", is_compared=False)]
        self.figures.setdefault(name, []).append(figures)
        self._show(name, figures)
        if cores > BUSY_CORES:
            typer.echo(report.busy_text(cores))
        for file in sorted(self.profiles.glob("*.raw")) if self.profiles else ():
            typer.echo(summary(file))

    def summaries(self) -> dict[str, list[Figure]]:
        """The figures of each scenario over all runs."""
        return {name: summary_of(runs) for name, runs in self.figures.items()}

    def show_summaries(self) -> None:
        """Print the medians of several runs."""
        for name, figures in self.summaries().items():
            self._show(f"{name}, median of {len(self.figures[name])} runs", figures, scenario=name)

    def _show(self, title: str, figures: Sequence[Figure], *, scenario: str = "") -> None:
        last = None if self.quick else last_of(scenario or title, self.records)
        report.show(title, figures, last=last)


def main(
    scenarios: Annotated[list[str] | None, typer.Argument(help=f"Any of {', '.join(SCENARIOS)}; all of them if none is named.")] = None,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the size: judges exact counts only.")] = False,
    runs: Annotated[int, typer.Option(help="Run all scenarios so often, and judge the medians.", min=1)] = 1,
    profile: Annotated[
        Path | None, typer.Option(help="Sample the services with py-spy, keep the stacks in this folder and print where the CPU goes.")
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Keep the figures as a JSON file in this folder. Later runs compare with those in bench/results.")
    ] = None,
) -> None:
    """Measure Metaloop on a fresh control plane. Exits with 1 if a bound is missed."""
    names = scenarios or [*SCENARIOS]
    if unknown := set(names) - set(SCENARIOS):
        raise typer.BadParameter(f"no scenario is called {', '.join(sorted(unknown))}")
    if profile:
        profile.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assets = runner.run(ensure())
        session = Session(names=names, assets=assets, quick=quick, profiles=profile, records=results.read_all(results.FOLDER))
        for _ in range(runs):
            runner.run(session.run_once())
    if runs > 1:
        session.show_summaries()
    if record:
        path = results.write(record, session.summaries(), calibrations=session.calibrations, quick=quick)
        typer.echo(f"recorded in {path}")
    _judge(session.summaries())


def _judge(summaries: dict[str, list[Figure]]) -> None:
    """Print the bounds that are missed; exit with 1 if there are any."""
    missed = [f"{name}: {figure.name}" for name, figures in summaries.items() for figure in figures if figure.verdict == "misses"]
    typer.echo("\n  ".join([f"{len(missed)} bounds missed", *missed]) if missed else "all bounds hold")
    if missed:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
