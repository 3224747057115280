"""The credentials of a connection, as a header and as PEM, from the content of its Secrets and ConfigMaps."""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import child_object, strings
from metaloop.hookgateway.core.connection import KeyRef, Kind, ObjectRef, Token, UserPassword
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.redaction import NO_SECRETS, Secrets
from metaloop.hookgateway.errors import CredentialsInvalid, CredentialsUnavailable

Contents: TypeAlias = Mapping[ObjectRef, Mapping[str, bytes]]
"""The content of Secrets and ConfigMaps by key. An object that does not exist has no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What a connection needs. Its representation shows none of it."""

    authorization: str | None = field(default=None, repr=False)
    """The value of the Authorization header."""

    ca_pem: str | None = None
    certificate_pem: bytes = field(default=b"", repr=False)
    private_key_pem: bytes = field(default=b"", repr=False)
    secrets: Secrets = NO_SECRETS

    @property
    def concern_tls(self) -> bool:
        """Whether they set anything for TLS.

        It is checked for http URLs too: when the URL becomes https, it is too late.
        """
        return self.ca_pem is not None or bool(self.certificate_pem)


NO_CREDENTIALS: Final = Credentials()


def credentials_from(endpoint: Endpoint, contents: Contents) -> Credentials:
    """An endpoint's credentials, given the content of the objects that its connection refers to.

    Raises CredentialsUnavailable if an object or key is missing, CredentialsInvalid if a value is unusable.
    """
    connection = endpoint.connection
    certificate = connection.client_certificate
    header, confidential = _header(connection.authorization, contents)
    return Credentials(
        authorization=header,
        ca_pem=_ca_pem(connection.ca_bundle, contents),
        certificate_pem=b"" if certificate is None else _value(certificate.certificate, contents),
        private_key_pem=b"" if certificate is None else _value(certificate.private_key, contents),
        secrets=Secrets.of((*confidential, *endpoint.confidential)),
    )


def data_of(obj: JsonObject, *, kind: Kind) -> dict[str, bytes]:
    """The content of a Secret or ConfigMap by key. Its kind is an argument, as items of a list do not say theirs."""
    if kind == "ConfigMap":
        texts = {key: value.encode() for key, value in strings(obj.get("data")).items()}
        return texts | _decoded(child_object(obj, "binaryData"))
    return _decoded(child_object(obj, "data"))


def _decoded(values: JsonObject) -> dict[str, bytes]:
    decoded: dict[str, bytes] = {}
    for key, value in strings(values).items():
        with suppress(NotBase64):  # counts as a missing key, which is reported when it is needed
            decoded[key] = b64decode(value, validate=True)
    return decoded


def _value(key: KeyRef, contents: Contents) -> bytes:
    """The bytes at a key. An empty value counts as missing."""
    value = _value_or_empty(key, contents)
    if not value:
        raise CredentialsUnavailable(f"{key.obj} has an empty key {key.key!r}")
    return value


def _value_or_empty(key: KeyRef, contents: Contents) -> bytes:
    held = contents.get(key.obj)
    if held is None:
        raise CredentialsUnavailable(f"{key.obj} does not exist")
    if key.key not in held:
        raise CredentialsUnavailable(f"{key.obj} has no key {key.key!r}")
    return held[key.key]


def _ca_pem(ca_bundle: str | KeyRef | None, contents: Contents) -> str | None:
    if not isinstance(ca_bundle, KeyRef):
        return ca_bundle
    try:
        return _value(ca_bundle, contents).decode("utf-8")
    except UnicodeDecodeError as error:
        raise CredentialsInvalid(f"{ca_bundle.obj}, key {ca_bundle.key!r}, holds no PEM certificates") from error


def _header(authorization: Token | UserPassword | None, contents: Contents) -> tuple[str | None, tuple[str, ...]]:
    """The Authorization header's value, and the confidential parts of it."""
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
        raise CredentialsInvalid(f"{key.obj}, key {key.key!r}: a user name can't contain a colon")
    encoded = b64encode(f"{username}:{password}".encode()).decode()
    return f"Basic {encoded}", (password, encoded)


_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def _header_text(key: KeyRef, contents: Contents) -> str:
    """The value at a key, trimmed for a header. A line break is refused, as it could add another header."""
    try:
        value = _value_or_empty(key, contents).decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise CredentialsInvalid(f"{key.obj}, key {key.key!r}, is not text") from error
    if _CONTROL.search(value):
        raise CredentialsInvalid(f"{key.obj}, key {key.key!r}, holds a line break or another control character")
    return value
