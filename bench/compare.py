"""`python -m bench.compare BEFORE AFTER SCENARIO...`: the figures of two checkouts, measured in alternating runs.

Each checkout runs its own bench with its own services, in its own `.venv`. Alternating spreads the machine's slow
minutes over both, and the median of the runs is what is compared.
"""

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench import results
from bench.comparison import Record, before_and_after
from bench.report import show_comparison


def main(
    before: Annotated[Path, typer.Argument(help="The checkout to compare with.", exists=True, file_okay=False)],
    after: Annotated[Path, typer.Argument(help="The checkout with the change.", exists=True, file_okay=False)],
    scenarios: Annotated[list[str], typer.Argument(help="Scenarios that both benches have.")],
    *,
    runs: Annotated[int, typer.Option(help="How often each checkout runs.", min=1)] = 5,
    quick: Annotated[bool, typer.Option("--quick", help="A tenth of the size, to see that both work.")] = False,
) -> None:
    """Compare two checkouts."""
    records: dict[Path, list[Record]] = {before: [], after: []}
    for number in range(runs):
        for checkout, found in records.items():
            typer.echo(f"run {number + 1} of {runs}: {checkout}")
            found.append(_measured(checkout, scenarios, quick=quick))
    for name in scenarios:
        show_comparison(f"{name}, median of {runs} runs (lowest-highest)", before_and_after(records[before], records[after], name))


def _measured(checkout: Path, scenarios: Sequence[str], *, quick: bool) -> Record:
    """What the checkout's own bench measured; its tables are printed only if it fails."""
    python = (checkout / ".venv/bin/python").absolute()
    with tempfile.TemporaryDirectory() as folder:
        argv = [str(python), "-m", "bench", *scenarios, "--record", folder, *(["--quick"] if quick else [])]
        done = subprocess.run(argv, cwd=checkout, capture_output=True, text=True, check=False)
        files = [*Path(folder).glob("*.json")]
        if not files:
            raise SystemExit(f"{checkout}: the bench failed\n{done.stdout}{done.stderr}")
        return results.read(files[0])


if __name__ == "__main__":
    typer.run(main)
