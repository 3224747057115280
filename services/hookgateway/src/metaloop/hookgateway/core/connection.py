"""TLS and authorization of a webhook as a spec describes them, with references to Secrets and ConfigMaps."""

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
class ObjectRef:
    """A reference to a Secret or ConfigMap."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class KeyRef:
    """A reference to one key of a Secret or ConfigMap."""

    obj: ObjectRef
    key: str


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """The certificate to show to the webhook, and its private key."""

    certificate: KeyRef
    private_key: KeyRef


@dataclass(frozen=True, slots=True)
class Token:
    """An Authorization header of this type with a Secret's value."""

    type: str
    value: KeyRef


@dataclass(frozen=True, slots=True)
class UserPassword:
    """An Authorization header of type Basic."""

    username: KeyRef
    password: KeyRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a spec says about a connection. Nothing that it refers to has been read yet."""

    ca_bundle: str | KeyRef | None = None
    """The PEM certificates, or a reference to them. They replace the system's roots."""

    client_certificate: ClientCertificate | None = None
    authorization: Token | UserPassword | None = None

    def object_refs(self) -> tuple[ObjectRef, ...]:
        """Every object that must be read before this connection can be made, each once."""
        return tuple(dict.fromkeys(key.obj for key in self._keys()))

    def _keys(self) -> list[KeyRef]:
        keys = [self.ca_bundle] if isinstance(self.ca_bundle, KeyRef) else []
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
    """Whether a webhook sets any part of its connection itself. Then endpointConfigs do not apply to it at all."""
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


def _ca_bundle(raw: JsonObject, path: str) -> str | KeyRef:
    inline = text(raw, "inline")
    given = [name for name in _CA_REFERENCES if raw.get(name) is not None]
    if len(given) + bool(inline) != 1:
        raise InvalidSpec(path, "needs exactly one of inline, secretRef and configMapRef")
    if inline:
        return inline
    reference = fields.object_at(raw, given[0], path) or {}
    return KeyRef(_object_ref(reference, f"{path}.{given[0]}", kind=_CA_REFERENCES[given[0]]), text(reference, "key") or "ca.crt")


def _client_certificate(raw: JsonObject, path: str) -> ClientCertificate:
    secret = _secret(raw, path)
    return ClientCertificate(
        certificate=KeyRef(secret, text(raw, "certKey") or "tls.crt"),
        private_key=KeyRef(secret, text(raw, "privateKeyKey") or "tls.key"),
    )


_HEADER_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _authorization(token: JsonObject | None, basic: JsonObject | None, path: str) -> Token | UserPassword | None:
    if token is not None:
        return _token(token, f"{path}.authorization")
    if basic is None:
        return None
    secret = _secret(basic, f"{path}.basicAuth")
    return UserPassword(
        username=KeyRef(secret, text(basic, "usernameKey") or "username"), password=KeyRef(secret, text(basic, "passwordKey") or "password")
    )


def _token(raw: JsonObject, path: str) -> Token:
    kind = text(raw, "type").strip() or "Bearer"
    if kind.lower() == "basic":
        raise InvalidSpec(f"{path}.type", "must not be Basic: use basicAuth")
    if not _HEADER_TOKEN.fullmatch(kind):
        raise InvalidSpec(f"{path}.type", "must be one word, as HTTP has it")
    reference = fields.object_at(raw, "secretRef", path) or {}
    key = fields.required_text(reference, "key", f"{path}.secretRef")
    return Token(kind, KeyRef(_secret(raw, path), key))


def _secret(raw: JsonObject, path: str) -> ObjectRef:
    return _object_ref(fields.object_at(raw, "secretRef", path) or {}, f"{path}.secretRef", kind="Secret")


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def _object_ref(raw: JsonObject, path: str, *, kind: Kind) -> ObjectRef:
    return ObjectRef(kind, _name(raw, "namespace", path), _name(raw, "name", path))


def _name(raw: JsonObject, key: str, path: str) -> str:
    # It becomes part of a URL path and of a field selector, so it must be a valid name.
    name = fields.required_text(raw, key, path)
    if not _NAME.fullmatch(name):
        raise InvalidSpec(f"{path}.{key}", "must be a name: lower case letters, digits, dots and dashes")
    return name
