"""What a service imports when it starts: the large client libraries only where they are used."""

import subprocess
import sys
from pathlib import Path

import pytest

from metaloop.common.json import dumps
from metaloop.devkit.certs import Authority

SERVICES = ("watcher", "reconciler", "hookgateway")
TOKEN = "token"

START = """
import asyncio, sys
from pathlib import Path
import metaloop.{service}.__main__
from metaloop.common.kube import credentials
from metaloop.common.telemetry.traces import configure_tracing

credentials.POD_FOLDER = Path({folder!r})
configure_tracing("{service}", "")
identity = asyncio.run(credentials.Credentials.read()).identity
print(identity.authorization, *({{"kubernetes", "opentelemetry.sdk"}} & sys.modules.keys()))
"""
"""Everything up to the first request to the API server, with the pod's folder in another place."""


def started(service: str, folder: Path, **environment: str) -> list[str]:
    """How a service that starts in this environment logs in, and which of the large libraries it has imported."""
    done = subprocess.run(
        [sys.executable, "-c", START.format(service=service, folder=str(folder))],
        env={"HOME": "/nowhere", **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.split()


@pytest.mark.parametrize("service", SERVICES)
def test_in_a_pod_a_service_starts_without_the_kubernetes_library(service: str, tmp_path: Path):
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "ca.crt").write_bytes(Authority("cluster").certificate_pem)

    seen = started(service, tmp_path, KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT="6443")

    assert seen == ["Bearer", TOKEN]


@pytest.mark.parametrize("service", SERVICES)
def test_with_a_plain_kubeconfig_a_service_starts_without_the_kubernetes_library(service: str, tmp_path: Path):
    path = kubeconfig(tmp_path, {"token": TOKEN})

    assert started(service, tmp_path, KUBECONFIG=path) == ["Bearer", TOKEN]


def test_an_exec_plugin_is_what_the_kubernetes_library_is_for(tmp_path: Path):
    status = {"token": TOKEN}
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    (tmp_path / "credential").write_bytes(dumps(credential))
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/cat", "args": [str(tmp_path / "credential")]}
    path = kubeconfig(tmp_path, {"exec": plugin})

    assert started("reconciler", tmp_path, KUBECONFIG=path) == ["Bearer", TOKEN, "kubernetes"]


def kubeconfig(folder: Path, user: dict[str, object]) -> str:
    """The path of a kubeconfig whose only user is this one."""
    path = folder / "kubeconfig"
    path.write_bytes(
        dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)
