"""The keys and certificates of a throw-away cluster: a CA, what it signs, and the service accounts' key pair."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID = dt.timedelta(days=30)
_CLOCK_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A private key with what makes it public: a certificate, or the bare public key."""

    public_pem: bytes
    private_pem: bytes

    def write(self, stem: Path) -> None:
        """Write `stem.crt` and, for our eyes only, `stem.key`."""
        stem.with_suffix(".crt").write_bytes(self.public_pem)
        key = stem.with_suffix(".key")
        key.touch(mode=0o600)
        key.write_bytes(self.private_pem)


class Authority:
    """A certificate authority that lives as long as this object."""

    def __init__(self, name: str) -> None:
        """Make the CA's key and its own certificate."""
        self._key = _new_key()
        self._name = _name_of(name)
        builder = _builder(subject=self._name, issuer=self._name, key=self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.certificate_pem = _signed(builder, by=self._key)

    def serving(self, name: str, *, hosts: Sequence[str]) -> KeyPair:
        """A key and certificate for a server that is reached by these host names and addresses."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._leaf(_name_of(name), usage=ExtendedKeyUsageOID.SERVER_AUTH, extension=names)

    def client(self, user: str, *, groups: Sequence[str] = ()) -> KeyPair:
        """A key and certificate by which an API server knows a user and its groups."""
        return self._leaf(_name_of(user, groups=groups), usage=ExtendedKeyUsageOID.CLIENT_AUTH)

    def _leaf(self, subject: x509.Name, *, usage: x509.ObjectIdentifier, extension: x509.ExtensionType | None = None) -> KeyPair:
        key = _new_key()
        builder = _builder(subject=subject, issuer=self._name, key=key)
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        # Strict verifiers, Python's since 3.13 among them, refuse a certificate that does not name its issuer's key.
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer, critical=False)
        if extension is not None:
            builder = builder.add_extension(extension, critical=False)
        return KeyPair(public_pem=_signed(builder, by=self._key), private_pem=_private_pem(key))


def signing_pair() -> KeyPair:
    """A bare key pair, as service account tokens are signed and checked with."""
    key = _new_key()
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return KeyPair(public_pem=public, private_pem=_private_pem(key))


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name_of(common_name: str, *, groups: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(*, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(subject_name=subject, issuer_name=issuer, public_key=key.public_key())
    return builder.serial_number(x509.random_serial_number()).not_valid_before(now - _CLOCK_SKEW).not_valid_after(now + _VALID)


def _signed(builder: x509.CertificateBuilder, *, by: ec.EllipticCurvePrivateKey) -> bytes:
    return builder.sign(by, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
