"""Connections as specs describe them, and their credentials."""

from base64 import b64encode

import pytest

from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue
from metaloop.hookgateway.core.connection import Connection, ObjectRef, parse_connection
from metaloop.hookgateway.core.credentials import Contents, Credentials, credentials_from
from metaloop.hookgateway.core.endpoint import resolve
from metaloop.hookgateway.errors import CredentialsInvalid, CredentialsUnavailable

SECRET = ObjectRef("Secret", "prod", "auth")
CONFIG_MAP = ObjectRef("ConfigMap", "prod", "auth")
REF: JsonObject = {"name": "auth", "namespace": "prod"}


def credentials(raw: JsonObject, contents: Contents) -> Credentials:
    return credentials_from(resolve({"url": "https://hooks/sync", **raw}, []), contents)


def token(**more: str) -> JsonObject:
    return {"authorization": {"secretRef": REF | {"key": "token"}, **more}}


def basic(**more: JsonValue) -> JsonObject:
    return {"basicAuth": {"secretRef": REF, **more}}


def held(**values: bytes) -> Contents:
    return {SECRET: values}


@pytest.mark.parametrize(
    ("raw", "contents", "header"),
    [
        (token(), held(token=b"abc"), "Bearer abc"),
        (token(type=""), held(token=b"abc"), "Bearer abc"),
        (token(type="  "), held(token=b"abc"), "Bearer abc"),
        (token(type="Token"), held(token=b"abc"), "Token abc"),
        (token(type=" Token "), held(token=b"abc"), "Token abc"),
        (token(), held(token=b"  abc\n"), "Bearer abc"),
        (token(), held(token=b""), "Bearer "),
        (token(), held(token=b"a b\tc"), "Bearer a b\tc"),
        (basic(), held(username=b"user", password=b"pass"), "Basic " + b64encode(b"user:pass").decode()),
        (basic(), held(username=b" user\n", password=b" pass\n"), "Basic " + b64encode(b"user:pass").decode()),
        (basic(), held(username=b"user", password=b"pa:ss"), "Basic " + b64encode(b"user:pa:ss").decode()),
        (basic(), held(username="jörg".encode(), password="ß".encode()), "Basic " + b64encode("jörg:ß".encode()).decode()),
        (basic(), held(username=b"", password=b""), "Basic " + b64encode(b":").decode()),
        (basic(usernameKey="u", passwordKey="p"), held(u=b"user", p=b"pass"), "Basic " + b64encode(b"user:pass").decode()),
        (basic(usernameKey="", passwordKey=""), held(username=b"user", password=b"pass"), "Basic " + b64encode(b"user:pass").decode()),
        ({}, {}, None),
    ],
)
def test_authorization_header_is_built_from_the_secret(raw: JsonObject, contents: Contents, header: str | None):
    assert credentials(raw, contents).authorization == header


@pytest.mark.parametrize(
    "raw",
    [
        token() | basic(),
        token(type="Basic"),
        token(type="bAsIc"),
        token(type=" basic "),
        token(type="Bearer\r\nX-Injected: yes"),
        token(type="two words"),
        {"authorization": {"secretRef": REF}},
        {"authorization": {"secretRef": {"name": "auth", "key": "token"}}},
        {"authorization": {"secretRef": {"namespace": "prod", "key": "token"}}},
        {"authorization": {}},
        {"authorization": "Bearer abc"},
        {"basicAuth": {}},
        {"basicAuth": {"secretRef": {"name": "auth"}}},
    ],
)
def test_authorization_with_an_invalid_spec_is_refused(raw: JsonObject):
    with pytest.raises(InvalidSpec):
        parse_connection(raw, "webhook")


@pytest.mark.parametrize(
    ("raw", "contents", "message"),
    [
        (token(), {}, "Secret prod/auth does not exist"),
        (token(), held(other=b"x"), "Secret prod/auth has no key 'token'"),
        (basic(), held(username=b"user"), "Secret prod/auth has no key 'password'"),
        (basic(), held(password=b"pass"), "Secret prod/auth has no key 'username'"),
    ],
)
def test_missing_secret_or_key_is_named(raw: JsonObject, contents: Contents, message: str):
    with pytest.raises(CredentialsUnavailable, match=message):
        credentials(raw, contents)


@pytest.mark.parametrize(
    ("raw", "contents"),
    [
        (basic(), held(username=b"us:er", password=b"hunter2")),
        (token(), held(token=b"hunter2\r\nX-Injected: yes")),
        (token(), held(token=b"hunter2\x00")),
        (token(), held(token=b"hunter2\xff")),
        (basic(), held(username=b"user", password=b"hunter2\n.")),
    ],
)
def test_secret_unfit_for_a_header_is_refused_without_being_quoted(raw: JsonObject, contents: Contents):
    with pytest.raises(CredentialsInvalid) as refusal:
        credentials(raw, contents)

    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize(
    ("ca_bundle", "contents", "pem"),
    [
        ({"inline": "PEM"}, {}, "PEM"),
        ({"secretRef": REF}, {SECRET: {"ca.crt": b"PEM"}}, "PEM"),
        ({"secretRef": REF | {"key": "root.pem"}}, {SECRET: {"root.pem": b"PEM"}}, "PEM"),
        ({"secretRef": REF | {"key": ""}}, {SECRET: {"ca.crt": b"PEM"}}, "PEM"),
        ({"configMapRef": REF}, {CONFIG_MAP: {"ca.crt": b"PEM"}}, "PEM"),
        ({"configMapRef": REF, "inline": ""}, {CONFIG_MAP: {"ca.crt": b"PEM"}}, "PEM"),
        ({"secretRef": REF}, {SECRET: {"ca.crt": "# Főtanúsítvány\nPEM".encode()}}, "# Főtanúsítvány\nPEM"),
    ],
)
def test_ca_bundle_comes_from_its_only_source(ca_bundle: JsonObject, contents: Contents, pem: str):
    assert credentials({"caBundle": ca_bundle}, contents).ca_pem == pem


@pytest.mark.parametrize(
    "ca_bundle",
    [
        {},
        {"inline": ""},
        {"inline": "PEM", "secretRef": REF},
        {"inline": "PEM", "configMapRef": REF},
        {"secretRef": REF, "configMapRef": REF},
        {"secretRef": {"name": "auth"}},
        {"configMapRef": {"namespace": "prod"}},
    ],
)
def test_ca_bundle_without_exactly_one_complete_source_is_refused(ca_bundle: JsonObject):
    with pytest.raises(InvalidSpec, match="caBundle"):
        parse_connection({"caBundle": ca_bundle}, "webhook")


@pytest.mark.parametrize("contents", [{}, {SECRET: {}}, {SECRET: {"ca.crt": b""}}, {CONFIG_MAP: {"ca.crt": b"PEM"}}])
def test_missing_ca_bundle_is_unavailable(contents: Contents):
    with pytest.raises(CredentialsUnavailable):
        credentials({"caBundle": {"secretRef": REF}}, contents)


def test_ca_bundle_that_is_not_text_is_invalid():
    with pytest.raises(CredentialsInvalid):
        credentials({"caBundle": {"secretRef": REF}}, {SECRET: {"ca.crt": b"\xff"}})


@pytest.mark.parametrize(
    ("client_tls", "contents"),
    [
        ({"secretRef": REF}, {SECRET: {"tls.crt": b"CERT", "tls.key": b"KEY"}}),
        ({"secretRef": REF, "certKey": "c", "privateKeyKey": "k"}, {SECRET: {"c": b"CERT", "k": b"KEY"}}),
        ({"secretRef": REF, "certKey": "", "privateKeyKey": ""}, {SECRET: {"tls.crt": b"CERT", "tls.key": b"KEY"}}),
    ],
)
def test_client_certificate_comes_with_its_key(client_tls: JsonObject, contents: Contents):
    found = credentials({"clientTLS": client_tls}, contents)

    assert (found.certificate_pem, found.private_key_pem) == (b"CERT", b"KEY")


@pytest.mark.parametrize(
    "contents", [{}, {SECRET: {"tls.crt": b"CERT"}}, {SECRET: {"tls.key": b"KEY"}}, {SECRET: {"tls.crt": b"CERT", "tls.key": b""}}]
)
def test_client_certificate_without_its_key_is_unavailable(contents: Contents):
    with pytest.raises(CredentialsUnavailable):
        credentials({"clientTLS": {"secretRef": REF}}, contents)


def test_client_certificate_without_secret_is_refused():
    with pytest.raises(InvalidSpec, match=r"clientTLS\.secretRef"):
        parse_connection({"clientTLS": {}}, "webhook")


def test_connection_lists_every_object_that_it_refers_to():
    raw = token() | {"caBundle": {"configMapRef": REF}, "clientTLS": {"secretRef": {"name": "tls", "namespace": "prod"}}}

    assert set(parse_connection(raw, "webhook").object_refs()) == {SECRET, CONFIG_MAP, ObjectRef("Secret", "prod", "tls")}


def test_connection_without_secrets_refers_to_nothing():
    assert Connection(ca_bundle="PEM").object_refs() == ()


def test_explicit_nulls_count_as_absent():
    assert parse_connection({"caBundle": None, "clientTLS": None, "authorization": None, "basicAuth": None}, "webhook") == Connection()


def test_representation_of_credentials_shows_no_secret():
    raw: JsonObject = {**basic(), "clientTLS": {"secretRef": REF}}
    contents = {SECRET: {"username": b"user", "password": b"hunter2", "tls.crt": b"CERT", "tls.key": b"hunter3"}}

    shown = repr(credentials(raw, contents))

    assert not any(secret in shown for secret in ("hunter2", "hunter3", b64encode(b"user:hunter2").decode()))
