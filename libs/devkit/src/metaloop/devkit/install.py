"""Prepares a cluster for Metaloop: checks that it answers, and installs the CRDs of Metaloop's kinds."""

import asyncio
import time
from pathlib import Path

from metaloop.common.errors import Conflict, MetaloopError, Unavailable
from metaloop.common.json import JsonObject, dumps, is_array, is_object
from metaloop.common.kube.client import APPLY_PATCH, KubeClient
from metaloop.common.kube.errors import Unauthorized
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit import console, manifests
from metaloop.devkit.errors import ClusterUnreachable

CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1", resource="customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
_FIELD_MANAGER = "metaloop"

# A cluster that is just starting has this long to answer.
_REACHABLE_SECONDS = 5.0
_REQUEST_SECONDS = 5.0
_ESTABLISHED_SECONDS = 30.0
_POLL_SECONDS = 0.1


async def prepare(kubeconfig: Path, *, with_crds: bool) -> None:
    """Return when the cluster of a kubeconfig answers and, with CRDs, serves our kinds; raises `ClusterUnreachable`."""
    try:
        await _prepare(kubeconfig, with_crds=with_crds)
    except MetaloopError as failure:
        raise ClusterUnreachable(f"the cluster of {kubeconfig} can't be used: {failure}") from failure


async def install_crds(client: KubeClient) -> None:
    """Create or update the CRDs of our kinds, and wait until they are served.

    A different CRD of another field manager stays as it is.
    """
    async with asyncio.TaskGroup() as tasks:
        for crd in manifests.crds():
            tasks.create_task(_install(client, crd))


async def _prepare(kubeconfig: Path, *, with_crds: bool) -> None:
    async with KubeClient.connect(str(kubeconfig), timeout_seconds=_REQUEST_SECONDS) as client:
        await _wait_until_reachable(client)
        if with_crds:
            await install_crds(client)


async def _wait_until_reachable(client: KubeClient) -> None:
    deadline = time.monotonic() + _REACHABLE_SECONDS
    while failure := await _failure_to_reach(client):
        if isinstance(failure, Unauthorized) or time.monotonic() > deadline:
            raise failure
        await asyncio.sleep(_POLL_SECONDS)


async def _failure_to_reach(client: KubeClient) -> Unavailable | None:
    try:
        await client.request("GET", "/version")
    except Unavailable as failure:
        return failure
    return None


async def _install(client: KubeClient, crd: JsonObject) -> None:
    name = unstructured.name(crd)
    try:
        # Server-side apply without force: it creates, updates what is ours, and is refused where another manager's
        # fields differ.
        await client.patch(CRDS, "", name, dumps(crd), APPLY_PATCH, {"fieldManager": _FIELD_MANAGER})
    except Conflict:
        console.message(f"{name} was installed by somebody else and differs from ours: it is left as it is")
    deadline = time.monotonic() + _ESTABLISHED_SECONDS
    while not _is_established(await client.get(CRDS, "", name)):
        if time.monotonic() > deadline:
            raise Unavailable(f"{name} is not established after {_ESTABLISHED_SECONDS:g} s")
        await asyncio.sleep(_POLL_SECONDS)


def _is_established(crd: JsonObject) -> bool:
    conditions = unstructured.child_object(crd, "status").get("conditions")
    return is_array(conditions) and any(
        is_object(condition) and condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions
    )
