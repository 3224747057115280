"""The kubeconfig files of clusters that we started."""

import base64
import json
from pathlib import Path

import pytest

from metaloop.devkit.certs import Authority
from metaloop.devkit.kubeconfig import Kubeconfig

AUTHORITY = Authority("ca")
ADA = AUTHORITY.client("ada", group="admins")
KUBECONFIG = Kubeconfig(server_url="https://127.0.0.1:6443", ca_pem=AUTHORITY.certificate_pem, user="ada", credentials=ADA)


def test_current_context_leads_to_the_cluster_and_the_user(tmp_path: Path) -> None:
    KUBECONFIG.write(tmp_path / "kubeconfig")

    document = json.loads((tmp_path / "kubeconfig").read_text())

    [context] = [each["context"] for each in document["contexts"] if each["name"] == document["current-context"]]
    [cluster] = [each["cluster"] for each in document["clusters"] if each["name"] == context["cluster"]]
    [user] = [each["user"] for each in document["users"] if each["name"] == context["user"]]
    assert (context["user"], context["namespace"], cluster["server"]) == ("ada", "default", "https://127.0.0.1:6443")
    assert base64.b64decode(cluster["certificate-authority-data"]) == AUTHORITY.certificate_pem
    assert base64.b64decode(user["client-certificate-data"]) == ADA.public_pem
    assert base64.b64decode(user["client-key-data"]) == ADA.private_pem


def test_only_the_present_user_can_read_the_file(tmp_path: Path) -> None:
    KUBECONFIG.write(tmp_path / "kubeconfig")

    assert (tmp_path / "kubeconfig").stat().st_mode & 0o077 == 0


def test_file_that_exists_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("x" * 100_000)

    KUBECONFIG.write(path)

    assert json.loads(path.read_text())["current-context"]


def test_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KUBECONFIG.write(tmp_path / "none" / "kubeconfig")
