"""Reads the address and the credentials of a cluster from a plain kubeconfig or a pod's service account.

A kubeconfig that needs more than reading files (an exec plugin, an auth provider, several files to merge) is left to
the official client's loaders, see `plugins.py`. They cost 0.15 s of CPU and 20 MB to import, so they are imported only
when they are needed.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from metaloop.common.json import JsonObject, JsonValue, is_object

POD_FOLDER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
HOST_VARIABLE: Final = "KUBERNETES_SERVICE_HOST"
_PORT_VARIABLE = "KUBERNETES_SERVICE_PORT"

_CLUSTER_KEYS = frozenset(
    {"server", "certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name", "proxy-url"}
)
_USER_KEYS = frozenset({"token", "tokenFile", "client-certificate", "client-certificate-data", "client-key", "client-key-data"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The address of a cluster and our credentials; certificates and keys are PEM. `repr` shows no secrets."""

    server_url: str
    authorization: str = field(default="", repr=False)
    """The value of the Authorization header; empty with a client certificate."""
    authority: str = ""
    """The CA bundle; empty for the system's authorities."""
    certificate: str = ""
    key: str = field(default="", repr=False)
    verifies: bool = True
    """Whether the server's certificate is verified."""
    server_hostname: str | None = None
    proxy_url: str | None = None


def login_of_pod(folder: Path, environ: Mapping[str, str]) -> Login:
    """The login of the pod's service account, whose files are in `folder`.

    Raises OSError, KeyError or ValueError if it is incomplete.
    """
    host, port = environ[HOST_VARIABLE], environ[_PORT_VARIABLE]
    token = (folder / "token").read_text().strip()
    if not token:
        raise ValueError(f"{folder / 'token'} is empty")
    address = f"[{host}]" if ":" in host else host
    return Login(server_url=f"https://{address}:{port}", authorization=f"Bearer {token}", authority=(folder / "ca.crt").read_text())


def login_of_kubeconfig(path: Path) -> Login | None:
    """The login of a kubeconfig's current context; None if it needs more than reading files.

    Raises OSError or ValueError for an invalid file.
    """
    config = _object(yaml.safe_load(path.read_text()), str(path))
    context = _object(_named(config, "contexts", config.get("current-context")).get("context"), "context")
    cluster = _object(_named(config, "clusters", context.get("cluster")).get("cluster"), "cluster")
    user = _object(_named(config, "users", context.get("user")).get("user") or {}, "user") if context.get("user") else {}
    if not _CLUSTER_KEYS.issuperset(cluster) or not _USER_KEYS.issuperset(user) or {"token", "tokenFile"} <= user.keys():
        return None
    files = _Files(path.parent)
    token = _text(user, "token") or files.read(user, "tokenFile").strip()
    return Login(
        server_url=_text(cluster, "server"),
        authorization=f"Bearer {token}" if token else "",
        authority=files.pem(cluster, "certificate-authority"),
        certificate=files.pem(user, "client-certificate"),
        key=files.pem(user, "client-key"),
        verifies=not cluster.get("insecure-skip-tls-verify"),
        server_hostname=_text(cluster, "tls-server-name") or None,
        proxy_url=_text(cluster, "proxy-url") or None,
    )


class _Files:
    """Reads the data in a kubeconfig, and the files that it names relative to its folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def pem(self, section: JsonObject, key: str) -> str:
        """The PEM of a key: its inline data, else the content of its file, else empty."""
        data = _text(section, f"{key}-data")
        return base64.b64decode(data, validate=True).decode() if data else self.read(section, key)

    def read(self, section: JsonObject, key: str) -> str:
        """The content of the file of a key; empty if there is none."""
        file = _text(section, key)
        return (self._folder / file).read_text() if file else ""


def _named(config: JsonObject, section: str, name: JsonValue) -> JsonObject:
    entries = config.get(section)
    for entry in entries if isinstance(entries, list) else ():
        if is_object(entry) and entry.get("name") == name:
            return entry
    raise ValueError(f"there is no {name!r} in its {section}")


def _object(value: JsonValue, what: str) -> JsonObject:
    if is_object(value):
        return value
    raise ValueError(f"{what} is not an object")


def _text(section: JsonObject, key: str) -> str:
    value = section.get(key)
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise ValueError(f"{key} is not a string")
