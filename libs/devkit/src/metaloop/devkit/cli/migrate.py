"""`metaloop migrate`: what changes when Metaloop takes over from Metacontroller."""

import typer

from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.devkit import console
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.migration.collect import facts_of_all, running_metacontrollers
from metaloop.devkit.migration.findings import Level, findings_of


async def check_migration(*, kubeconfig: str) -> None:
    """Print for each controller what differs, what is needed first and what would stop it; nothing is written.

    Raises DevkitError where Metaloop would not serve a controller or some of its parents.
    """
    blocked: list[str] = []
    async with KubeClient.connect(kubeconfig) as kube:
        for workload in await running_metacontrollers(kube):
            typer.echo(f"{Level.PREPARE}: {workload} runs Metacontroller: scale it to 0 before Metaloop starts")
        async for facts in facts_of_all(kube):
            name = f"{unstructured.kind(facts.raw)} {unstructured.name(facts.raw)}"
            found = findings_of(facts)
            typer.echo(f"{name}: {len(facts.parents)} parents, {len(found)} findings")
            for finding in found:
                typer.echo(f"  {finding}")
            blocked += [name for finding in found if finding.level is Level.BLOCKS][:1]
    if blocked:
        raise DevkitError(f"Metaloop would not serve all of {', '.join(blocked)}")
    console.message("nothing stops Metaloop from serving these controllers; `metaloop rbac` prints the roles that they need")
