"""The real control plane: its credentials, its controllers, and its restarts."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from metaloop.devkit.assets import ensure
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.workdir import run_folder

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane() -> AsyncIterator[ControlPlane]:
    with run_folder() as folder:
        async with ControlPlane.start(await ensure(), folder, audit_log=folder / "audit.log") as plane:
            yield plane


@pytest_asyncio.fixture(loop_scope="module")
async def admin(plane: ControlPlane) -> AsyncIterator[httpx.AsyncClient]:
    tls = ssl.create_default_context(cafile=plane.ca_path)
    headers = {"Authorization": f"Bearer {plane.admin_token}"}
    async with httpx.AsyncClient(base_url=plane.server_url, verify=tls, headers=headers, trust_env=False, timeout=60) as client:
        yield client


async def kubectl(plane: ControlPlane, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(await ensure() / "kubectl", "--kubeconfig", plane.kubeconfig_path, *arguments), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    return output.decode()


def config_map(name: str, *, owner: dict[str, str] | None = None) -> dict[str, object]:
    return {"metadata": {"name": name, "ownerReferences": [owner] if owner else []}, "data": {"key": "value"}}


async def created(admin: httpx.AsyncClient, body: dict[str, object]) -> dict[str, dict[str, str]]:
    response = await admin.post("/api/v1/namespaces/default/configmaps", json=body)
    return response.raise_for_status().json()


async def test_the_kubeconfig_identifies_the_administrator_by_certificate(plane: ControlPlane) -> None:
    whoami = json.loads(await kubectl(plane, "auth", "whoami", "--output", "json"))

    assert whoami["status"]["userInfo"]["username"] == "admin"
    assert "system:masters" in whoami["status"]["userInfo"]["groups"]


async def test_the_token_identifies_the_administrator(admin: httpx.AsyncClient) -> None:
    assert (await admin.get("/api/v1/namespaces")).status_code == 200


async def test_requests_without_credentials_are_refused(plane: ControlPlane, admin: httpx.AsyncClient) -> None:
    stranger = await admin.get("/api/v1/namespaces", headers={"Authorization": ""})

    assert stranger.status_code in {401, 403}


async def test_service_account_tokens_are_issued_and_accepted(admin: httpx.AsyncClient) -> None:
    async def token() -> str:
        response = await admin.post("/api/v1/namespaces/default/serviceaccounts/default/token", json={"spec": {}})
        expect(response.status_code == 201, f"no token: {response.text}")
        return response.json()["status"]["token"]

    bearer = {"Authorization": f"Bearer {await eventually(token)}"}
    review = await admin.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={}, headers=bearer)

    assert review.json()["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"


async def test_the_garbage_collector_deletes_objects_of_a_deleted_owner(admin: httpx.AsyncClient) -> None:
    owner = await created(admin, config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await created(admin, config_map("owned", owner=reference))

    await admin.delete("/api/v1/namespaces/default/configmaps/owner")

    async def collected() -> None:
        expect((await admin.get("/api/v1/namespaces/default/configmaps/owned")).status_code == 404, "not collected yet")

    await eventually(collected, within_seconds=90)


async def test_the_audit_log_has_a_request_when_it_is_received_and_when_it_is_answered(
    plane: ControlPlane, admin: httpx.AsyncClient
) -> None:
    assert plane.audit_log
    await admin.get("/api/v1/namespaces/default/configmaps/counted")

    await eventually(lambda: _logged(plane, "/configmaps/counted", stages=["RequestReceived", "ResponseComplete"]))


async def _logged(plane: ControlPlane, uri: str, *, stages: list[str]) -> None:
    """Raise AssertionError until the audit log has the request for a URI in these stages."""
    assert plane.audit_log
    events = [json.loads(line) for line in plane.audit_log.read_text().splitlines()]
    found = [event["stage"] for event in events if event["requestURI"].endswith(uri)]
    expect(found == stages, f"{uri} was logged in the stages {found}")


async def test_objects_survive_a_kill_of_the_api_server(plane: ControlPlane, admin: httpx.AsyncClient) -> None:
    await created(admin, config_map("before-apiserver"))

    await plane.apiserver.kill()
    await plane.apiserver.start()

    assert (await admin.get("/api/v1/namespaces/default/configmaps/before-apiserver")).status_code == 200


async def test_objects_survive_a_kill_of_etcd(plane: ControlPlane, admin: httpx.AsyncClient) -> None:
    await created(admin, config_map("before-etcd"))

    await plane.etcd.kill()
    await plane.etcd.start()

    async def there() -> None:
        response = await admin.get("/api/v1/namespaces/default/configmaps/before-etcd")
        expect(response.status_code == 200, response.text)

    await eventually(there)
