"""Which cluster this is."""

import pytest
from scripted_server import ScriptedServer

from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.cluster_uid import cluster_uid
from metaloop.common.objects.unstructured import uid
from metaloop.devkit.testbed.cluster import NAMESPACES


def answer(code: int, body: JsonObject) -> bytes:
    wire = dumps(body)
    return b"HTTP/1.1 %d Something\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (code, len(wire), wire)


def status(code: int, reason: str) -> bytes:
    return answer(code, {"kind": "Status", "code": code, "reason": reason, "message": "no"})


NAMESPACE = answer(200, {"metadata": {"name": "kube-system", "uid": "0123"}})


async def uid_from(scripted: ScriptedServer, *answers: bytes) -> str:
    """What is made of these answers."""
    scripted.script.extend(answers)
    async with KubeClient.connect(str(scripted.kubeconfig)) as kube:
        return await cluster_uid(kube)


@pytest.mark.e2e
async def test_cluster_is_known_by_its_namespace_kube_system(kube: KubeClient):
    namespace = await kube.get(NAMESPACES, "", "kube-system")

    assert await cluster_uid(kube) == uid(namespace) != ""


async def test_only_one_namespace_is_read(scripted: ScriptedServer):
    assert await uid_from(scripted, NAMESPACE) == "0123"
    assert scripted.requests[0].startswith(b"GET /api/v1/namespaces/kube-system ")


@pytest.mark.parametrize("refusal", [status(403, "Forbidden"), status(404, "NotFound")], ids=["forbidden", "not found"])
async def test_cluster_stays_unknown_where_reading_is_refused(scripted: ScriptedServer, refusal: bytes):
    assert await uid_from(scripted, refusal) == ""


@pytest.mark.parametrize("outage", [status(503, ""), status(504, "Timeout"), b""], ids=["overloaded", "timeout", "cut"])
async def test_an_api_server_that_is_away_is_asked_until_it_answers(scripted: ScriptedServer, outage: bytes):
    assert await uid_from(scripted, outage, outage, NAMESPACE) == "0123"
