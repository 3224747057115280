"""Plays a scenario: starts what it needs, runs its steps in order, and sums up what happened."""

import time
from pathlib import Path

import typer

from metaloop.devkit.console import duration
from metaloop.devkit.demo.environment import Environment, start_environment
from metaloop.devkit.demo.kubelet import Kubelet
from metaloop.devkit.demo.output import Output, open_output
from metaloop.devkit.demo.scenario import S, Scenario, ScenarioRun
from metaloop.devkit.demo.snapshot import Snapshot
from metaloop.devkit.workdir import run_folder

NAMESPACE = "demo"


async def run_demo(scenario: Scenario[S], example: Path) -> None:
    """Start a cluster and Metaloop, play the scenario of an example, and print a summary."""
    began = time.monotonic()
    with run_folder() as folder:
        async with start_environment(folder, example=example, namespace=NAMESPACE) as environment:
            snapshot = await _play_visibly(scenario, environment)
            typer.echo(await _summary(environment, snapshot, took=time.monotonic() - began))


async def play(scenario: Scenario[S], environment: Environment, output: Output) -> Snapshot:
    """Run the steps, and return what the cluster holds in the end; raises DevkitError if a step fails."""
    kubelet = Kubelet(cluster=environment.cluster, namespace=environment.namespace)
    async with kubelet.running():
        run = ScenarioRun(environment=environment, output=output, take_snapshot=scenario.take_snapshot, kubelet=kubelet)
        for step in scenario.steps:
            await step(run)
        return await run.snapshot()


async def _play_visibly(scenario: Scenario[S], environment: Environment) -> Snapshot:
    with open_output() as output:
        return await play(scenario, environment, output)


async def _summary(environment: Environment, snapshot: Snapshot, *, took: float) -> str:
    requests = await environment.requests()
    writes, reads = sum(request.is_write for request in requests), sum(request.is_read for request in requests)
    return "\n".join(
        [
            "",
            f"  objects      {snapshot.counts}",
            f"  hook calls   {await environment.hook_calls()}",
            f"  API writes   {writes} by Metaloop, counted in the API server's audit log ({reads} reads)",
            f"  time         {duration(took)}",
        ]
    )
