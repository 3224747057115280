"""No secret leaks: planted ones are searched for in everything that the gateway sends to anybody but the webhook."""

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from process import GatewayProcess, gateway_process
from webserver import Request, Script, ServerConnection, WebServer, response, sends, serving

from metaloop.common.json import JsonObject
from metaloop.devkit.certs import Authority
from metaloop.devkit.ports import free_port

TOKEN, PASSWORD, QUERY, GATEWAY_TOKEN = "t0ken/+planted==", "p&ss<w0rd>planted", "query-planted", "gateway-planted"
PAIR = Authority("planted").client("planted")
PLANTED = (
    TOKEN,
    PASSWORD,
    QUERY,
    GATEWAY_TOKEN,
    b64encode(f"user:{PASSWORD}".encode()).decode(),
    *PAIR.private_pem.decode().splitlines()[1:-1],
)
STORED = {"token": TOKEN, "username": "user", "password": PASSWORD, "broken": f"{TOKEN}\r\nX: y", "tls.crt": "", "tls.key": ""}
REF: JsonObject = {"name": "auth", "namespace": "prod"}


async def secrets_of_a_cluster(request: Request, connection: ServerConnection) -> None:
    """An API server with one Secret that never changes."""
    if "watch=true" in request.path:
        await connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await connection.until_closed()
    stored = STORED | {"tls.crt": PAIR.public_pem.decode(), "tls.key": PAIR.private_pem.decode()}
    data = {key: b64encode(value.encode()).decode() for key, value in stored.items()}
    await connection.send(response(200, json.dumps({"metadata": {"resourceVersion": "1"}, "items": [{"data": data}]}).encode()))


def echoes(status: int) -> Script:
    """A webhook that echoes everything it was sent, as debug pages do."""

    async def script(request: Request, connection: ServerConnection) -> None:
        everything = json.dumps({"path": request.path, "headers": request.headers}).encode()
        await connection.send(response(status, everything, location=f"http://localhost{request.path}", etag=f'"{TOKEN}"'))

    return script


async def echoes_instead_of_http(request: Request, connection: ServerConnection) -> None:
    """A webhook that echoes what it was sent in its status line."""
    await connection.send(f"HTTP/1.1 {request.headers.get('authorization')} {request.path}\r\n\r\n".encode())
    connection.close()


async def echoes_in_its_coding(request: Request, connection: ServerConnection) -> None:
    """A webhook that echoes what it was sent as its content coding."""
    await connection.send(response(200, b"{}", content_encoding=request.headers.get("authorization", "")))


SCRIPTS = [echoes(200), echoes(301), echoes(401), echoes(500), echoes_instead_of_http, echoes_in_its_coding, sends(b"", then_closes=True)]


def webhooks(url: str) -> list[JsonObject]:
    """Every way to have a secret in a spec, valid and invalid."""
    with_query = f"{url}?key={QUERY}"
    token: JsonObject = {"secretRef": {**REF, "key": "token"}}
    return [
        {"url": with_query},
        {"url": with_query, "authorization": token},
        {"url": with_query, "basicAuth": {"secretRef": REF}},
        {"url": with_query, "clientTLS": {"secretRef": REF}},
        {"url": with_query.replace("http:", "https:"), "timeout": "300ms", "clientTLS": {"secretRef": REF}, "authorization": token},
        {"url": with_query, "authorization": {"secretRef": {**REF, "key": "broken"}}},
        {"url": with_query, "authorization": {"secretRef": {**REF, "key": "tls.key"}}},
        {"url": with_query, "basicAuth": {"secretRef": REF, "usernameKey": "broken"}},
        {"url": with_query, "clientTLS": {"secretRef": REF, "certKey": "token"}},
        {"url": with_query, "clientTLS": {"secretRef": REF, "privateKeyKey": "token"}},
        {"url": with_query, "caBundle": {"secretRef": {**REF, "key": "tls.key"}}},
        {"url": with_query, "etag": {"enabled": True}, "authorization": token},
        {"url": with_query.replace("http://", f"http://user:{PASSWORD}@")},
        {"url": with_query.replace("http://", f"gopher://{PASSWORD}/")},
        {"url": with_query, "timeout": "0s", "authorization": token},
    ]


@dataclass(frozen=True, slots=True)
class Observed:
    """A gateway with a collector of its traces."""

    gateway: GatewayProcess
    collector: WebServer


@pytest.fixture
async def observed(tmp_path: Path) -> AsyncIterator[Observed]:
    async with serving(secrets_of_a_cluster) as cluster, collecting() as collector:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(cluster.url(""))))
        settings: dict[str, str] = {
            "kubeconfig": str(kubeconfig),
            "otlp_endpoint": collector.url(""),
            "log_level": "debug",
            "gateway_token": GATEWAY_TOKEN,
        }
        async with gateway_process(free_port(), tls=None, **settings) as gateway:
            gateway.headers["Authorization"] = f"Bearer {GATEWAY_TOKEN}"
            yield Observed(gateway, collector)


@asynccontextmanager
async def collecting() -> AsyncIterator[WebServer]:
    """A collector of traces."""

    async def script(_: Request, connection: ServerConnection) -> None:
        await connection.send(response(200, b""))

    async with serving(script) as server:
        yield server


def _kubeconfig(url: str) -> object:
    return {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


async def test_planted_secrets_are_in_no_log_metric_trace_or_verdict(observed: Observed):
    gateway, texts = observed.gateway, []
    for script in SCRIPTS:
        async with serving(script) as hook:
            for webhook in webhooks(hook.url()):
                for _ in range(2):
                    answer = await gateway.post(webhook)
                    texts.append("" if answer.headers["X-Metaloop-Verdict"] in {"accepted", "not-modified"} else answer.text)
            sent = "".join(str(request) for request in hook.requests)
            assert all(secret in sent for secret in (QUERY, TOKEN)), "the webhook itself must get them"
    unauthorized = await gateway.post("http://hooks/", Authorization=f"Bearer {TOKEN}")
    metrics = (await gateway.client.get("/metrics")).text
    assert await gateway.stopped() == 0

    outputs = {
        "verdicts": "".join(texts) + unauthorized.text,
        "metrics": metrics,
        "traces": "".join(request.body.decode("latin-1") for request in observed.collector.requests),
        "log": gateway.log,
    }
    assert {output for output, text in outputs.items() if len(text) < 1000} == set(), "each output must have something to search"
    assert [(output, secret) for output, text in outputs.items() for secret in PLANTED if secret in text] == []
