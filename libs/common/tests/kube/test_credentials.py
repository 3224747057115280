"""Credentials for a real cluster, from kubeconfigs."""

import base64
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from metaloop.common.errors import Unavailable
from metaloop.common.json import dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.credentials import Credentials
from metaloop.common.kube.errors import InvalidKubeconfig, Unanswered, Unauthorized
from metaloop.common.kube.login import login_of_kubeconfig, login_of_pod
from metaloop.devkit.controlplane import ControlPlane

Write = Callable[[dict[str, object], dict[str, object]], str]


def cluster_of(plane: ControlPlane) -> dict[str, object]:
    return {"server": plane.server_url, "certificate-authority": str(plane.ca_path)}


async def can_enter(kubeconfig: str) -> bool:
    async with KubeClient.connect(kubeconfig) as kube:
        return b"items" in await kube.request("GET", "/api/v1/namespaces")


@pytest.mark.e2e
async def test_client_certificate_is_accepted_from_files_and_from_data(plane: ControlPlane, write_kubeconfig: Write, tmp_path: Path):
    user = yaml.safe_load(plane.kubeconfig_path.read_text())["users"][0]["user"]
    for key, file in (("client-certificate", "me.crt"), ("client-key", "me.key")):
        (tmp_path / file).write_bytes(base64.b64decode(user[f"{key}-data"]))

    assert await can_enter(str(plane.kubeconfig_path))
    assert await can_enter(write_kubeconfig(cluster_of(plane), {"client-certificate": "me.crt", "client-key": "me.key"}))


@pytest.mark.e2e
async def test_token_is_accepted(plane: ControlPlane, write_kubeconfig: Write):
    assert await can_enter(write_kubeconfig(cluster_of(plane), {"token": plane.admin_token}))


@pytest.mark.e2e
async def test_wrong_token_is_unauthorized(plane: ControlPlane, write_kubeconfig: Write):
    with pytest.raises(Unauthorized):
        await can_enter(write_kubeconfig(cluster_of(plane), {"token": "wrong"}))


@pytest.mark.e2e
async def test_changed_token_file_is_read_again(plane: ControlPlane, write_kubeconfig: Write, tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("over\n")
    async with KubeClient.connect(write_kubeconfig(cluster_of(plane), {"tokenFile": str(token)})) as kube:
        with pytest.raises(Unauthorized):
            await kube.request("GET", "/api")
        token.write_text(f"{plane.admin_token}\n")

        assert await kube.request("GET", "/api")


@pytest.mark.e2e
async def test_unknown_authority_is_accepted_with_insecure_skip_tls_verify(plane: ControlPlane, write_kubeconfig: Write):
    cluster = {"server": plane.server_url, "insecure-skip-tls-verify": True}

    assert await can_enter(write_kubeconfig(cluster, {"token": plane.admin_token}))


@pytest.mark.e2e
async def test_unknown_authority_is_not_trusted_by_default(plane: ControlPlane, write_kubeconfig: Write):
    with pytest.raises(Unanswered, match=r"(?i)certificate"):
        await can_enter(write_kubeconfig({"server": plane.server_url}, {"token": plane.admin_token}))


@pytest.mark.e2e
async def test_trusted_certificate_needs_no_root_authority(plane: ControlPlane, write_kubeconfig: Write):
    """Many kubeconfigs contain only an intermediate authority. Here it is the serving certificate itself."""
    cluster: dict[str, object] = {"server": plane.server_url, "certificate-authority": str(plane.ca_path.with_name("serving.crt"))}

    assert await can_enter(write_kubeconfig(cluster, {"token": plane.admin_token}))


PLUGIN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
runs = folder / "runs"
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
status = json.loads((folder / "status").read_text())
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


def plugin(folder: Path) -> dict[str, object]:
    (folder / "plugin.py").write_text(PLUGIN)
    args = [str(folder / "plugin.py"), str(folder)]
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": args}}


@pytest.mark.e2e
async def test_plugin_runs_again_only_when_its_token_is_rejected(plane: ControlPlane, write_kubeconfig: Write, tmp_path: Path):
    (tmp_path / "status").write_bytes(dumps({"token": plane.admin_token}))
    async with KubeClient.connect(write_kubeconfig(cluster_of(plane), plugin(tmp_path))) as kube:
        for _ in range(3):
            await kube.request("GET", "/api")
        assert (tmp_path / "runs").read_text() == "x"

    (tmp_path / "status").write_text('{"token": "over"}')
    async with KubeClient.connect(write_kubeconfig(cluster_of(plane), plugin(tmp_path))) as kube:
        (tmp_path / "status").write_bytes(dumps({"token": plane.admin_token}))
        await kube.request("GET", "/api")

    assert (tmp_path / "runs").read_text() == "xxx"


@pytest.mark.e2e
async def test_plugin_may_return_a_certificate(plane: ControlPlane, write_kubeconfig: Write, tmp_path: Path):
    user = yaml.safe_load(plane.kubeconfig_path.read_text())["users"][0]["user"]
    pem = {key: base64.b64decode(user[f"{key}-data"]).decode() for key in ("client-certificate", "client-key")}
    status = {"clientCertificateData": pem["client-certificate"], "clientKeyData": pem["client-key"]}
    (tmp_path / "status").write_bytes(dumps(status))

    assert await can_enter(write_kubeconfig(cluster_of(plane), plugin(tmp_path)))


async def test_failing_plugin_is_reported_at_once(write_kubeconfig: Write, tmp_path: Path):
    with pytest.raises(InvalidKubeconfig, match="exec plugin"):
        await Credentials.read(write_kubeconfig({"server": "https://127.0.0.1:1"}, plugin(tmp_path)))


@pytest.mark.e2e
async def test_identity_stays_the_same_while_nothing_changes(plane: ControlPlane):
    credentials = await Credentials.read(str(plane.kubeconfig_path))
    before = credentials.identity

    await credentials.reread(before)

    assert credentials.identity == before
    assert credentials.identity.tls is before.tls


async def test_unreadable_credentials_stay_until_they_are_rejected(write_kubeconfig: Write, tmp_path: Path):
    """A file that is missing for a moment, or a plugin that fails once, must not stop requests."""
    token = tmp_path / "token"
    token.write_text("good for hours")
    credentials = await Credentials.read(write_kubeconfig({"server": "http://127.0.0.1:1"}, {"tokenFile": str(token)}))
    before = credentials.identity
    token.unlink()

    await credentials.reread(before)

    assert credentials.identity is before
    with pytest.raises(Unavailable, match="token"):
        await credentials.replace_rejected(before)


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:6443", "ftp://a", "https://", "https://a:99999", "https://a:0", "https://a..b", f"https://{'a' * 70}"]
)
async def test_server_that_is_not_a_url_is_refused(write_kubeconfig: Write, url: str):
    with pytest.raises(InvalidKubeconfig, match=r"server|Port"):
        await Credentials.read(write_kubeconfig({"server": url}, {}))


@pytest.mark.parametrize("content", ["", "[]", "clusters: 1", "current-context: x", "{", "\0"])
async def test_file_that_is_not_a_kubeconfig_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "kubeconfig"
    path.write_text(content)

    with pytest.raises(InvalidKubeconfig):
        await Credentials.read(str(path))


async def test_missing_kubeconfig_is_named():
    with pytest.raises(InvalidKubeconfig, match="/nowhere/kubeconfig"):
        await Credentials.read("/nowhere/kubeconfig")


async def test_kubeconfig_of_the_environment_is_the_default(write_kubeconfig: Write, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", write_kubeconfig({"server": "http://cluster.example:8080/"}, {}))

    credentials = await Credentials.read()

    assert credentials.identity.server_url == "http://cluster.example:8080"


def test_service_account_is_read_from_its_files(tmp_path: Path):
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_text("PEM")

    login = login_of_pod(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})

    assert (login.server_url, login.authorization, login.authority) == ("https://[fd00::1]:443", "Bearer secret", "PEM")
    assert "secret" not in repr(login)


@pytest.mark.parametrize(
    "user", [{"exec": {}}, {"auth-provider": {}}, {"username": "me", "password": "x"}, {"token": "a", "tokenFile": "b"}]
)
def test_other_kubeconfigs_are_left_to_the_official_loader(write_kubeconfig: Write, user: dict[str, object]):
    assert login_of_kubeconfig(Path(write_kubeconfig({"server": "https://127.0.0.1:1"}, user))) is None
