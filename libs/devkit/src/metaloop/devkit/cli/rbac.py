"""`metaloop rbac`: the roles that the services need for the given or installed controllers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
import yaml

from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import KINDS, parse_controller
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects.resource import ResourceId
from metaloop.devkit import console
from metaloop.devkit.dryrun.controllers import installed
from metaloop.devkit.errors import DevkitError
from metaloop.devkit.rbac.manifests import as_yaml, roles
from metaloop.devkit.rbac.review import review
from metaloop.devkit.rbac.rules import Need, Service, generates, needs_of, selects_related


@dataclass(frozen=True, slots=True, kw_only=True)
class RbacOptions:
    """The options of the command."""

    files: Sequence[Path]
    """Manifests with controllers; none: those that are installed."""
    related: Sequence[ResourceId]
    generated: Sequence[ResourceId]
    kubeconfig: str
    namespace: str
    is_check: bool


async def rbac(options: RbacOptions) -> None:
    """Print the roles, or what the accounts of a deployment lack or have needlessly.

    Raises DevkitError where a check finds something.
    """
    controllers = _in_files(options.files) if options.files else await _installed(options.kubeconfig)
    needs = {service: needs_of(service, controllers, related=options.related, generated=options.generated) for service in Service}
    for controller in selects_related(controllers):
        if not options.related:
            console.message(f"{controller.kind} {controller.name} has a customize hook: name what it selects by --related")
    for controller in generates(controllers):
        if not options.generated:
            console.message(f"the hook of {controller.kind} {controller.name} decides what it creates: name these resources by --generated")
    if options.is_check:
        await _check(needs, options)
    else:
        typer.echo(as_yaml(roles(needs)), nl=False)


def _in_files(files: Sequence[Path]) -> list[Controller]:
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text()) if document]
    return [parse_controller(document) for document in documents if document.get("kind") in KINDS]


async def _installed(kubeconfig: str) -> list[Controller]:
    async with KubeClient.connect(kubeconfig) as kube:
        return [parse_controller(raw) for raw in await installed(kube, kind="", name="")]


async def _check(needs: Mapping[Service, Sequence[Need]], options: RbacOptions) -> None:
    async with KubeClient.connect(options.kubeconfig) as kube:
        findings = await review(kube, needs, namespace=options.namespace)
    for finding in findings:
        typer.echo(str(finding))
    if findings:
        raise DevkitError(f"{len(findings)} permissions differ from what the controllers need")
    console.message("the permissions are what the controllers need")
