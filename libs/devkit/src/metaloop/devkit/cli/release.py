"""`metaloop release-finalizers`: removes the finalizer of a deleted controller from its parents."""

from collections.abc import Iterable

import typer

from metaloop.common.api.controller import finalizer_of
from metaloop.common.api.kinds import KINDS, named, parse_controller
from metaloop.common.errors import InvalidSpec, Refused
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.kube import finalizers
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit import console
from metaloop.devkit.dryrun.controllers import controller_named, installed, served_by
from metaloop.devkit.errors import ControllerExists, DevkitError

_NOT_FOUND = 404
_NOT_ALLOWED = 405


async def release(controller: str, *, kubeconfig: str, resource: str, dry_run: bool, finalizer: str = "") -> None:
    """Remove the finalizer of a deleted controller from all objects that have it, and print these objects.

    `finalizer` is its name, where it does not follow from the name of the controller. Raises ControllerExists.
    """
    kind, name = controller_named(controller)
    if not kind:
        raise DevkitError(f"{controller} should be {named(name)}")
    async with KubeClient.connect(kubeconfig) as kube:
        found = await installed(kube, kind=kind, name=name)
        finalizer = finalizer or _finalizer(ControllerId(kind, name), found)
        alive = [each for each in found if not unstructured.is_deleting(each)]
        if alive and not dry_run:
            raise ControllerExists(f"{kind} {name} still exists: while it has a finalize hook, it would add its finalizer again")
        resources = _chosen((await served_by(kube)).values(), resource)
        released = sum([await _release_all(kube, each, finalizer, dry_run=dry_run) for each in resources])
    console.message(f"{released} objects {'have' if dry_run else 'had'} the finalizer {finalizer}")


def _finalizer(controller: ControllerId, found: Iterable[JsonObject]) -> str:
    """The finalizer of a controller. Raises DevkitError if only the controller could say it, and it is gone."""
    if not KINDS[controller.kind].names_finalizer:
        return finalizer_of(controller)
    for raw in found:
        try:
            return parse_controller(raw).finalizer
        except InvalidSpec as error:
            raise DevkitError(f"{controller} does not say what its finalizer is called ({error}): add --finalizer NAME") from error
    raise DevkitError(f"{controller} is gone, and said itself what its finalizer is called: add --finalizer NAME, such as PREFIX/finalizer")


def _chosen(resources: Iterable[ResourceInfo], word: str) -> list[ResourceInfo]:
    """The resources that `word` names, as `things` or `things.example.com`; all if it is empty. One version of each."""
    chosen: dict[tuple[str, str], ResourceInfo] = {}
    for info in resources:
        if word in {"", info.resource, f"{info.resource}.{info.group}"}:
            chosen.setdefault((info.group, info.resource), info)
    return list(chosen.values())


async def _release_all(kube: KubeClient, info: ResourceInfo, finalizer: str, *, dry_run: bool) -> int:
    released = 0
    while found := await _holders(kube, info, finalizer):
        freed = [obj for obj in found if dry_run or await finalizers.release(kube, info, obj, finalizer)]
        for obj in freed:
            space = unstructured.namespace(obj)
            typer.echo(f"{info.resource} {space}/{unstructured.name(obj)}" if space else f"{info.resource} {unstructured.name(obj)}")
        released += len(freed)
        if dry_run:
            break
    return released


async def _holders(kube: KubeClient, info: ResourceInfo, finalizer: str) -> list[JsonObject]:
    """The objects that have the finalizer.

    None of a resource that can't be listed, as reviews, or that we may not list.
    """
    try:
        return await finalizers.holders(kube, info, finalizer)
    except Refused as error:
        if error.status.code not in {_NOT_FOUND, _NOT_ALLOWED}:
            console.message(f"skipped {info.id}: {error}")
        return []
