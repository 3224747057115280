"""How to prove who we are to a webhook, and how it proves who it is: from the spec, and from the Secrets that it names."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from metaloop.common.api import fields
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import text
from metaloop.hookgateway.core.clean import NO_SECRETS, Secrets
from metaloop.hookgateway.errors import CredentialsInvalid, CredentialsUnavailable

CONNECTION_FIELDS: Final = ("caBundle", "clientTLS", "authorization", "basicAuth")


@dataclass(frozen=True, slots=True)
class Referent:
    """A Secret or ConfigMap that a webhook's spec names."""

    kind: Literal["Secret", "ConfigMap"]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class KeyOf:
    """One key of a Secret or ConfigMap."""

    referent: Referent
    key: str


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The certificate that we show, and its key."""

    certificate: KeyOf
    private_key: KeyOf


@dataclass(frozen=True, slots=True)
class Token:
    """An Authorization header of the given type with a Secret's value."""

    type: str
    value: KeyOf


@dataclass(frozen=True, slots=True)
class UserPassword:
    """An Authorization header of type Basic."""

    username: KeyOf
    password: KeyOf


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a spec says of a connection, its Secrets not looked up yet."""

    ca_bundle: str | KeyOf | None = None
    """The PEM itself, or where it stands. It replaces the system's roots."""

    client_certificate: ClientCertificate | None = None
    authorization: Token | UserPassword | None = None

    def referents(self) -> frozenset[Referent]:
        """Every object that must be read before this connection can be made."""
        return frozenset(key.referent for key in self._keys())

    def _keys(self) -> list[KeyOf]:
        keys = [self.ca_bundle] if isinstance(self.ca_bundle, KeyOf) else []
        if self.client_certificate is not None:
            keys += [self.client_certificate.certificate, self.client_certificate.private_key]
        match self.authorization:
            case Token(value=value):
                keys.append(value)
            case UserPassword(username=username, password=password):
                keys += [username, password]
            case None:
                pass
        return keys


PLAIN: Final = Connection()

Contents: TypeAlias = Mapping[Referent, Mapping[str, bytes]]
"""What the referents hold, as far as they exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a connection needs, in hand. Nothing of it shows in its representation."""

    authorization: str | None = field(default=None, repr=False)
    """The value of the Authorization header."""

    ca_pem: str | None = None
    certificate_pem: bytes = field(default=b"", repr=False)
    private_key_pem: bytes = field(default=b"", repr=False)
    secrets: Secrets = NO_SECRETS

    @property
    def concern_tls(self) -> bool:
        """Whether they say anything of TLS. Then they must be right even where the URL is http: the day it becomes https is too late."""
        return self.ca_pem is not None or bool(self.certificate_pem)


NO_CREDENTIALS: Final = Credentials()


def sets_connection(webhook: JsonObject) -> bool:
    """Whether a webhook says anything of its connection itself: then endpointConfigs don't apply to it, not even in part."""
    return any(webhook.get(name) is not None for name in CONNECTION_FIELDS)


def parse_connection(raw: JsonObject, path: str) -> Connection:
    """The connection that a webhook or an endpointConfig describes. Raises InvalidSpec that names the field."""
    ca_bundle = fields.object_at(raw, "caBundle", path)
    client_tls = fields.object_at(raw, "clientTLS", path)
    token = fields.object_at(raw, "authorization", path)
    basic = fields.object_at(raw, "basicAuth", path)
    if token is not None and basic is not None:
        raise InvalidSpec(path, "authorization and basicAuth exclude one another")
    return Connection(
        ca_bundle=None if ca_bundle is None else _ca_bundle(ca_bundle, f"{path}.caBundle"),
        client_certificate=None if client_tls is None else _client_certificate(client_tls, f"{path}.clientTLS"),
        authorization=_authorization(token, basic, path),
    )


def credentials_from(connection: Connection, contents: Contents) -> Credentials:
    """The connection's credentials, from what the Secrets and ConfigMaps that it names hold now.

    Raises CredentialsUnavailable where an object or key is missing, CredentialsInvalid where a value can't serve.
    """
    certificate = connection.client_certificate
    header, confidential = _header(connection.authorization, contents)
    return Credentials(
        authorization=header,
        ca_pem=_ca_pem(connection.ca_bundle, contents),
        certificate_pem=b"" if certificate is None else _value(certificate.certificate, contents),
        private_key_pem=b"" if certificate is None else _value(certificate.private_key, contents),
        secrets=Secrets.of(confidential),
    )


# From the spec.


def _ca_bundle(raw: JsonObject, path: str) -> str | KeyOf:
    inline = text(raw, "inline")
    references = {"Secret": fields.object_at(raw, "secretRef", path), "ConfigMap": fields.object_at(raw, "configMapRef", path)}
    given = [name for name, reference in references.items() if reference is not None]
    if len(given) + bool(inline) != 1:
        raise InvalidSpec(path, "needs exactly one of inline, secretRef and configMapRef")
    if inline:
        return inline
    kind: Literal["Secret", "ConfigMap"] = "Secret" if given == ["Secret"] else "ConfigMap"
    reference = references[kind] or {}
    where = f"{path}.{'secretRef' if kind == 'Secret' else 'configMapRef'}"
    return KeyOf(_referent(reference, where, kind=kind), text(reference, "key") or "ca.crt")


def _client_certificate(raw: JsonObject, path: str) -> ClientCertificate:
    secret = _secret(raw, path)
    return ClientCertificate(
        certificate=KeyOf(secret, text(raw, "certKey") or "tls.crt"),
        private_key=KeyOf(secret, text(raw, "privateKeyKey") or "tls.key"),
    )


_HEADER_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _authorization(token: JsonObject | None, basic: JsonObject | None, path: str) -> Token | UserPassword | None:
    if token is not None:
        return _token(token, f"{path}.authorization")
    if basic is None:
        return None
    secret = _secret(basic, f"{path}.basicAuth")
    return UserPassword(
        username=KeyOf(secret, text(basic, "usernameKey") or "username"), password=KeyOf(secret, text(basic, "passwordKey") or "password")
    )


def _token(raw: JsonObject, path: str) -> Token:
    kind = text(raw, "type").strip() or "Bearer"
    if kind.lower() == "basic":
        raise InvalidSpec(f"{path}.type", "must not be Basic: use basicAuth")
    if not _HEADER_TOKEN.fullmatch(kind):
        raise InvalidSpec(f"{path}.type", "must be one word, as HTTP has it")
    reference = fields.object_at(raw, "secretRef", path) or {}
    key = fields.required_text(reference, "key", f"{path}.secretRef")
    return Token(kind, KeyOf(_secret(raw, path), key))


def _secret(raw: JsonObject, path: str) -> Referent:
    return _referent(fields.object_at(raw, "secretRef", path) or {}, f"{path}.secretRef", kind="Secret")


def _referent(raw: JsonObject, path: str, *, kind: Literal["Secret", "ConfigMap"]) -> Referent:
    return Referent(kind, fields.required_text(raw, "namespace", path), fields.required_text(raw, "name", path))


# From the Secrets.


def _value(key: KeyOf, contents: Contents) -> bytes:
    """The bytes at a key; none at all count as missing."""
    value = _value_or_empty(key, contents)
    if not value:
        raise CredentialsUnavailable(f"{key.referent} has an empty key {key.key!r}")
    return value


def _value_or_empty(key: KeyOf, contents: Contents) -> bytes:
    held = contents.get(key.referent)
    if held is None:
        raise CredentialsUnavailable(f"{key.referent} does not exist")
    if key.key not in held:
        raise CredentialsUnavailable(f"{key.referent} has no key {key.key!r}")
    return held[key.key]


def _ca_pem(ca_bundle: str | KeyOf | None, contents: Contents) -> str | None:
    if not isinstance(ca_bundle, KeyOf):
        return ca_bundle
    try:
        return _value(ca_bundle, contents).decode("ascii")
    except UnicodeDecodeError as error:
        raise CredentialsInvalid(f"{ca_bundle.referent}, key {ca_bundle.key!r}, holds no PEM certificates") from error


def _header(authorization: Token | UserPassword | None, contents: Contents) -> tuple[str | None, tuple[str, ...]]:
    """The Authorization header's value, and what of it nobody may see."""
    match authorization:
        case None:
            return None, ()
        case Token(type=kind, value=key):
            value = _header_text(key, contents)
            return f"{kind} {value}", (value,)
        case UserPassword():
            return _basic(authorization, contents)


def _basic(authorization: UserPassword, contents: Contents) -> tuple[str, tuple[str, ...]]:
    username = _header_text(authorization.username, contents)
    password = _header_text(authorization.password, contents)
    if ":" in username:
        key = authorization.username
        raise CredentialsInvalid(f"{key.referent}, key {key.key!r}: a user name can't contain a colon")
    encoded = b64encode(f"{username}:{password}".encode()).decode()
    return f"Basic {encoded}", (password, encoded)


_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _header_text(key: KeyOf, contents: Contents) -> str:
    """The value at a key as it may stand in a header: trimmed, and without a line break by which it could add another header."""
    try:
        value = _value_or_empty(key, contents).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise CredentialsInvalid(f"{key.referent}, key {key.key!r}, is not text") from error
    if _CONTROL.search(value):
        raise CredentialsInvalid(f"{key.referent}, key {key.key!r}, holds a line break or another control character")
    return value
