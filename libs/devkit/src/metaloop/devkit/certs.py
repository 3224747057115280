"""Keys and certificates of a throw-away cluster: a CA and what it signs, in the files that Kubernetes reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme

# A client has no host name, but Go refuses a certificate whose critical SubjectAlternativeName is empty.
_CLIENT_HOST = "client.invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    public_pem: bytes
    private_pem: bytes

    def write(self, stem: Path) -> None:
        """Write `stem.crt`, and `stem.key` that only the present user can read."""
        stem.with_suffix(".crt").write_bytes(self.public_pem)
        key = stem.with_suffix(".key")
        key.touch(mode=0o600)
        key.write_bytes(self.private_pem)


class Authority:
    """A certificate authority that lives as long as this object."""

    def __init__(self, name: str) -> None:
        """Make the CA's key and its own certificate."""
        self._ca = trustme.CA(organization_unit_name=name)
        self.certificate_pem = self._ca.cert_pem.bytes()

    def serving(self, name: str, *, hosts: Sequence[str]) -> KeyPair:
        """A key and certificate for a server with these host names and addresses."""
        return _key_pair(self._ca.issue_cert(*hosts, common_name=name))

    def client(self, user: str, *, group: str = "") -> KeyPair:
        """A key and certificate that identify a user to an API server, and a group unless that is empty."""
        return _key_pair(self._ca.issue_cert(_CLIENT_HOST, common_name=user, organization_name=group or None))


def _key_pair(leaf: trustme.LeafCert) -> KeyPair:
    [certificate] = leaf.cert_chain_pems
    return KeyPair(public_pem=certificate.bytes(), private_pem=leaf.private_key_pem.bytes())
