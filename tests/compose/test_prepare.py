"""What prepares a compose project: refused kubeconfigs, and passwords that each service gets alone."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from metaloop.common.kube.provision import missing_from, new_token

ROOT = Path(__file__).parents[2]
PREPARE = ROOT / "deploy" / "compose" / "prepare.py"
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
CLUSTER = {"name": "c", "cluster": {"server": "https://127.0.0.1:6443", "certificate-authority-data": "eA=="}}


@pytest.fixture(scope="module")
def prepare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prepare", PREPARE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def files(prepare: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    monkeypatch.setattr(prepare, "USERS", ROOT / "deploy/kustomize/base/nats/users.conf")
    return prepare.credentials(missing_from((), new_token=new_token))


def test_a_kubeconfig_that_holds_its_certificates_is_taken(prepare: ModuleType):
    user = {"name": "u", "user": {"client-certificate-data": "eA==", "client-key-data": "eA=="}}

    assert prepare.problem_of(yaml.safe_dump({"clusters": [CLUSTER], "users": [user]})) == ""


@pytest.mark.parametrize(
    ("kubeconfig", "problem"),
    [
        ({}, "names no cluster"),
        ([], "names no cluster"),
        ({"clusters": [{"cluster": {"certificate-authority": "/ca.crt"}}]}, "certificate-authority is in another file"),
        (
            {"clusters": [CLUSTER], "users": [{"user": {"client-certificate": "a", "client-key": "b"}}]},
            "client-certificate, client-key is in",
        ),
        ({"clusters": [CLUSTER], "users": [{"user": {"tokenFile": "t"}}]}, "kubectl config view --raw --flatten"),
    ],
)
def test_a_kubeconfig_that_a_container_cannot_use_is_refused(prepare: ModuleType, kubeconfig: object, problem: str):
    assert problem in prepare.problem_of(yaml.safe_dump(kubeconfig))


def test_every_password_of_nats_is_filled_in(files: Mapping[str, str]):
    assert [line for line in files["users.conf"].splitlines() if "password" in line and "$NATS" in line] == []
    assert files["users.conf"].count("password: t") == 4


def test_each_service_gets_its_own_login_and_no_other(files: Mapping[str, str]):
    watcher, reconciler = files["watcher/METALOOP_NATS_URL"], files["reconciler/METALOOP_NATS_URL"]

    assert watcher.startswith("nats://watcher-a:t")
    assert reconciler.startswith("nats://reconciler-a:t")
    assert [name for name in files if name.startswith("hookgateway/")] == ["hookgateway/METALOOP_GATEWAY_TOKEN"]
    assert files["hookgateway/METALOOP_GATEWAY_TOKEN"] == files["reconciler/METALOOP_GATEWAY_TOKEN"]


@pytest.mark.parametrize("service", sorted(set(COMPOSE["services"]) - {"prepare", "traces"}))
def test_a_container_is_confined(service: str):
    settings = COMPOSE["services"][service]

    assert settings["read_only"] is True
    assert settings["cap_drop"] == ["ALL"]
    assert int(settings["user"].partition(":")[0]) > 0


def test_reconcilers_have_no_fixed_port():
    """So `--scale reconciler=3` works on one network."""
    assert COMPOSE["services"]["reconciler"]["environment"]["METALOOP_PORT"] == "0"


@pytest.mark.parametrize("file", ["jaeger.yml", "nats.conf"])
def test_what_is_configured_in_a_file_listens_on_loopback(file: str):
    text = (PREPARE.parent / file).read_text()

    addresses = [word.strip('"{},') for word in text.split() if word.strip('"{},')[-4:].isdigit() and ":" in word]
    assert addresses
    assert [address for address in addresses if not address.startswith("127.0.0.1:")] == []
