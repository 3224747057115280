"""Secrets and ConfigMaps watched in a real cluster, with permission for their names only."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
from process import gateway_process
from webserver import Request, ServerConnection, response, serving

from metaloop.common.hooks.call import Rejected
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import Forbidden
from metaloop.common.objects import unstructured
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.account import Account, rule
from metaloop.devkit.testbed.builtin import SECRETS
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually
from metaloop.hookgateway.core.connection import ObjectRef
from metaloop.hookgateway.watch_objects import ClusterObjects

pytestmark = pytest.mark.e2e


@pytest.fixture
def plane(shared_plane: ControlPlane) -> ControlPlane:
    return shared_plane


@pytest_asyncio.fixture
async def admin(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(plane.kubeconfig_path)) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(admin: KubeClient) -> str:
    return unstructured.name(await admin.create(NAMESPACES, {"metadata": {"generateName": "hooks-"}}))


@pytest_asyncio.fixture
async def account(plane: ControlPlane, namespace: str, tmp_path: Path) -> AsyncIterator[Account]:
    """The gateway's service account, without any permission yet."""
    async with Cluster.connect(plane) as cluster:
        yield await Account.create(plane, cluster, namespace=namespace, name="gateway", folder=tmp_path)


@pytest_asyncio.fixture
async def gateway(account: Account) -> AsyncIterator[KubeClient]:
    async with KubeClient.connect(str(account.kubeconfig_path)) as client:
        yield client


async def permit(account: Account, resource: str, name: str) -> None:
    """Permit the gateway to list and watch this one object."""
    await account.allow(rule("", [resource], verbs=["list", "watch"], names=[name]), namespace=account.namespace)


def secret(namespace: str, name: str, **values: str) -> JsonObject:
    data: JsonObject = {key: b64encode(value.encode()).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


async def test_secret_is_watched_from_creation_to_deletion(admin: KubeClient, account: Account, gateway: KubeClient, namespace: str):
    await permit(account, "secrets", "auth")
    async with asyncio.timeout(60), aclosing(ClusterObjects(gateway).watch(ObjectRef("Secret", namespace, "auth"))) as states:
        assert await anext(states) is None

        await admin.create(SECRETS, secret(namespace, "auth", token="one"))
        assert await anext(states) == {"token": b"one"}

        await admin.create(SECRETS, secret(namespace, "another", token="two"))
        replaced = await admin.replace(SECRETS, secret(namespace, "auth", token="three"))
        assert await anext(states) == {"token": b"three"}

        await admin.delete(SECRETS, namespace, "auth", uid=unstructured.uid(replaced))
        assert await anext(states) is None


async def test_config_map_is_read_with_its_binary_data(admin: KubeClient, account: Account, gateway: KubeClient, namespace: str):
    await permit(account, "configmaps", "roots")
    metadata: JsonObject = {"name": "roots", "namespace": namespace}
    await admin.create(CONFIG_MAPS, {"metadata": metadata, "data": {"ca.crt": "PEM"}, "binaryData": {"bin": "AAE="}})

    async with asyncio.timeout(60), aclosing(ClusterObjects(gateway).watch(ObjectRef("ConfigMap", namespace, "roots"))) as states:
        assert await anext(states) == {"ca.crt": b"PEM", "bin": b"\0\1"}


async def test_object_without_permission_is_not_read(admin: KubeClient, account: Account, gateway: KubeClient, namespace: str):
    await permit(account, "secrets", "auth")
    await admin.create(SECRETS, secret(namespace, "other", token="one"))

    async with asyncio.timeout(60), aclosing(ClusterObjects(gateway).watch(ObjectRef("Secret", namespace, "other"))) as states:
        with pytest.raises(Forbidden, match="gateway"):
            await anext(states)


async def test_rotated_secret_reaches_the_webhook_without_a_restart(admin: KubeClient, account: Account, namespace: str):
    await permit(account, "secrets", "auth")
    async with serving(wants_new_token) as hook, gateway_process(kubeconfig=str(account.kubeconfig_path)) as gateway:
        webhook: JsonObject = {
            "url": hook.url(),
            "authorization": {"secretRef": {"name": "auth", "namespace": namespace, "key": "token"}},
        }

        async def is_told(reason: str) -> None:
            verdict = await gateway.call(webhook)
            assert (verdict.fault.wire if isinstance(verdict, Rejected) else "") == reason

        await is_told("CredentialsUnavailable")
        await admin.create(SECRETS, secret(namespace, "auth", token="old"))
        await eventually(lambda: is_told("StatusUnexpected"))
        await admin.replace(SECRETS, secret(namespace, "auth", token="new"))
        await eventually(lambda: is_told(""))


async def wants_new_token(request: Request, connection: ServerConnection) -> None:
    """A webhook that accepts `Bearer new` and nothing else."""
    await connection.send(response(200 if request.headers["authorization"] == "Bearer new" else 401, b"{}"))
