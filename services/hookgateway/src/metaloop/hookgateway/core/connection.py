"""How to prove who we are to a webhook, and how it proves who it is: from the spec, and from the Secrets that it names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from metaloop.common.api import fields
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import text

Kind: TypeAlias = Literal["Secret", "ConfigMap"]

CONNECTION_FIELDS: Final = ("caBundle", "clientTLS", "authorization", "basicAuth")

_CA_REFERENCES: Final[Mapping[str, Kind]] = {"secretRef": "Secret", "configMapRef": "ConfigMap"}


@dataclass(frozen=True, slots=True)
class Referent:
    """A Secret or ConfigMap that a webhook's spec names."""

    kind: Kind
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

    def referents(self) -> tuple[Referent, ...]:
        """Every object that must be read before this connection can be made, once each."""
        return tuple(dict.fromkeys(key.referent for key in self._keys()))

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


def _ca_bundle(raw: JsonObject, path: str) -> str | KeyOf:
    inline = text(raw, "inline")
    given = [name for name in _CA_REFERENCES if raw.get(name) is not None]
    if len(given) + bool(inline) != 1:
        raise InvalidSpec(path, "needs exactly one of inline, secretRef and configMapRef")
    if inline:
        return inline
    reference = fields.object_at(raw, given[0], path) or {}
    return KeyOf(_referent(reference, f"{path}.{given[0]}", kind=_CA_REFERENCES[given[0]]), text(reference, "key") or "ca.crt")


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


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def _referent(raw: JsonObject, path: str, *, kind: Kind) -> Referent:
    return Referent(kind, _name(raw, "namespace", path), _name(raw, "name", path))


def _name(raw: JsonObject, key: str, path: str) -> str:
    # It becomes part of a path and of a field selector: nothing but a name may get there.
    name = fields.required_text(raw, key, path)
    if not _NAME.fullmatch(name):
        raise InvalidSpec(f"{path}.{key}", "must be a name: lower case letters, digits, dots and dashes")
    return name
