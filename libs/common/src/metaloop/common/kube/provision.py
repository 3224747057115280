"""Makes the credentials of a deployment, by which its parts know one another.

A Job runs it beside the services. It creates the Secret, or adds to it what is missing. What the Secret holds already
stays as it is, so that the Job may run at each `kubectl apply`.
"""

import asyncio
import secrets
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from pydantic import Field

from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import AlreadyExists, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.settings import KubeSettings, load_settings

SECRETS: Final = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
_SERVICES: Final = ("watcher", "reconciler")
_SLOTS: Final = ("a", "b")
TOKENS: Final = ("gateway", "gateway-other", "nats-route", *(f"nats-{service}-{slot}" for service in _SERVICES for slot in _SLOTS))
"""The keys that hold random tokens. NATS knows two users for each service, so that one of them can be changed while the
other is in use; and the gateway accepts two tokens."""


class ProvisionSettings(KubeSettings):
    """The settings. Each field is the environment variable METALOOP_<NAME>."""

    credentials_secret: str = Field(default="metaloop-credentials", min_length=1, description="The name of the Secret.")
    credentials_namespace: str = Field(default="metaloop", min_length=1, description="The namespace of the Secret.")


def missing_from(held: Iterable[str], *, new_token: Callable[[], str]) -> Mapping[str, str]:
    """What a Secret with the keys `held` lacks: random tokens, and for each service the user that it logs in with."""
    known = set(held)
    made = {key: new_token() for key in TOKENS if key not in known}
    for service in _SERVICES:
        first = made.get(f"nats-{service}-a")
        if f"nats-{service}-user" not in known and first is not None:
            made |= {f"nats-{service}-user": f"{service}-a", f"nats-{service}-password": first}
    return made


async def provide(kube: KubeClient, settings: ProvisionSettings) -> Mapping[str, str]:
    """Have the Secret hold everything. Returns what was added."""
    namespace, name = settings.credentials_namespace, settings.credentials_secret
    try:
        found = await kube.get(SECRETS, namespace, name)
    except NotFound:
        return await _create(kube, settings)
    added = missing_from(unstructured.child_object(found, "data"), new_token=new_token)
    if added:
        await kube.patch(SECRETS, namespace, name, dumps({"data": _encoded(added)}), content_type=MERGE_PATCH)
    return added


async def _create(kube: KubeClient, settings: ProvisionSettings) -> Mapping[str, str]:
    made = missing_from((), new_token=new_token)
    metadata: JsonObject = {"namespace": settings.credentials_namespace, "name": settings.credentials_secret}
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": _encoded(made)}
    try:
        await kube.create(SECRETS, secret)
    except AlreadyExists:
        return await provide(kube, settings)
    return made


def new_token() -> str:
    """A random token. It begins with a letter: NATS would read one that begins with a digit as a number."""
    return f"t{secrets.token_hex(24)}"


def _encoded(values: Mapping[str, str]) -> JsonObject:
    return {key: b64encode(value.encode()).decode() for key, value in values.items()}


async def _run(settings: ProvisionSettings) -> None:
    async with KubeClient.connect(settings.kubeconfig) as kube:
        added = await provide(kube, settings)
    target = f"{settings.credentials_namespace}/{settings.credentials_secret}"
    sys.stdout.write(f"Secret {target}: added {', '.join(added)}\n" if added else f"Secret {target}: complete\n")


def main() -> None:
    """Provide the credentials once. Exit status: 0, 1 where the API server refuses, 2 for invalid settings."""
    settings = load_settings(ProvisionSettings, sys.argv[1:])
    try:
        asyncio.run(_run(settings))
    except MetaloopError as problem:
        sys.exit(f"{problem}")


if __name__ == "__main__":
    main()
