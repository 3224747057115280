"""Kubeconfig files for clusters that we started."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path

from metaloop.devkit.certs import KeyPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """A kubeconfig of one user for one cluster, with the certificates inside the file."""

    server_url: str
    ca_pem: bytes
    user: str
    credentials: KeyPair

    def write(self, path: Path) -> None:
        """Write the file as JSON, which is YAML as well; only the present user can read it."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(self._document(), indent=2))

    def _document(self) -> dict[str, object]:
        name = "metaloop"
        cluster = {"server": self.server_url, "certificate-authority-data": _encoded(self.ca_pem)}
        user = {
            "client-certificate-data": _encoded(self.credentials.public_pem),
            "client-key-data": _encoded(self.credentials.private_pem),
        }
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": self.user, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": self.user, "namespace": "default"}}],
            "current-context": name,
        }


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
