"""How a webhook's spec and the endpointConfigs resolve to an endpoint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.hookgateway.core.connection import Connection
from metaloop.hookgateway.core.endpoint import matches, parse_url, resolve

SERVICE: JsonObject = {"name": "hooks", "namespace": "prod"}


@pytest.mark.parametrize(
    ("webhook", "url"),
    [
        ({"url": "http://hooks/sync"}, "http://hooks/sync"),
        ({"url": "https://hooks:8443/a%2Fb?x=a+b&y=%20"}, "https://hooks:8443/a%2Fb?x=a+b&y=%20"),
        ({"url": "http://hooks"}, "http://hooks"),
        ({"url": "http://hooks/sync#part"}, "http://hooks/sync"),
        ({"url": "http://hooks/größe"}, "http://hooks/gr%C3%B6%C3%9Fe"),
        ({"url": "http://hooks/sync", "service": SERVICE, "path": "/ignored"}, "http://hooks/sync"),
        ({"service": SERVICE, "path": "/sync"}, "http://hooks.prod:80/sync"),
        ({"service": SERVICE | {"port": 8080}, "path": "/sync"}, "http://hooks.prod:8080/sync"),
        ({"service": SERVICE | {"protocol": "https"}, "path": "/sync"}, "https://hooks.prod:80/sync"),
        ({"service": SERVICE | {"protocol": "https", "port": 443}, "path": "/"}, "https://hooks.prod:443/"),
        ({"service": SERVICE | {"protocol": "HTTPS"}, "path": "/sync"}, "https://hooks.prod:80/sync"),
        ({"url": "", "service": SERVICE, "path": "/sync"}, "http://hooks.prod:80/sync"),
    ],
)
def test_url_is_that_of_the_spec_or_built_from_service_and_path(webhook: JsonObject, url: str):
    assert resolve(webhook, []).url == url


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port"),
    [
        ("http://hooks/sync", "http", "hooks", 80),
        ("https://hooks/sync", "https", "hooks", 443),
        ("HTTPS://Hooks.PROD:8443", "https", "hooks.prod", 8443),
        ("http://10.0.0.1:8080/", "http", "10.0.0.1", 8080),
        ("http://[fd00::1]:8080/", "http", "fd00::1", 8080),
        ("http://hooks.prod.svc.cluster.local./", "http", "hooks.prod.svc.cluster.local.", 80),
        ("http://my_hooks:/", "http", "my_hooks", 80),
    ],
)
def test_url_is_parsed(url: str, scheme: str, host: str, port: int):
    endpoint = parse_url(url, "url")

    assert (endpoint.scheme, endpoint.host, endpoint.port) == (scheme, host, port)


@pytest.mark.parametrize(
    "webhook",
    [
        {},
        {"service": SERVICE},
        {"path": "/sync"},
        {"service": {"name": "hooks"}, "path": "/sync"},
        {"service": {"namespace": "prod"}, "path": "/sync"},
        {"service": SERVICE, "path": "sync"},
        {"service": SERVICE | {"port": 70000}, "path": "/sync"},
        {"service": SERVICE | {"port": "80"}, "path": "/sync"},
        {"service": SERVICE | {"port": True}, "path": "/sync"},
        {"service": SERVICE | {"protocol": "gopher"}, "path": "/sync"},
        {"service": {"name": "hooks@evil.com/", "namespace": "prod"}, "path": "/sync"},
        {"service": {"name": "hooks", "namespace": "prod:80/x?"}, "path": "/sync"},
        {"service": SERVICE, "path": "/sync\r\nX-Injected: yes"},
        {"service": "hooks", "path": "/sync"},
    ],
)
def test_spec_without_an_endpoint_is_refused(webhook: JsonObject):
    with pytest.raises(InvalidSpec):
        resolve(webhook, [])


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "unix:///run/docker.sock",
        "unix+http://sock/sync",
        "ftp://hooks/sync",
        "javascript:alert(1)",
        "hooks/sync",
        "//hooks/sync",
        "http:///sync",
        "http://",
        "http://:80/",
        "http://hooks:0/",
        "http://hooks:99999/",
        "http://hooks:http/",
        "http://user:password@hooks/sync",
        "http://token@hooks/sync",
        "http://@hooks/",
        "http://hooks/a b",
        "http://hooks/\r\nHost: evil",
        "http://ho\tst/",
        "http://evil\\@hooks/",
        " http://hooks/",
        "http://hooks/\x7f",
        "http://[::1/",
        "http://höoks/",
        "http://ho%6fks/",
        "http://-hooks/",
        "http://[fe80::1%25eth0]/",
        "http://[::1.2.3]/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0177.0.0.1/",
        "http://127.0.0.1./",
    ],
)
def test_url_that_parsers_could_disagree_about_is_refused(url: str):
    with pytest.raises(InvalidSpec):
        parse_url(url, "url")


@pytest.mark.parametrize(
    "url", ["http://user:hunter2@hooks/sync", "http://user:hunter2", "http://user:hunter2@[hooks/", "http://hunter2\uff0fx@hooks/"]
)
def test_refusal_of_a_password_does_not_quote_it(url: str):
    with pytest.raises(InvalidSpec) as refusal:
        parse_url(url, "webhook.url")

    assert "hunter2" not in str(refusal.value)
    assert "webhook.url" in str(refusal.value)


def test_label_omits_the_query():
    assert parse_url("https://hooks/sync?token=hunter2", "url").label == "https://hooks/sync"


@pytest.mark.parametrize(
    ("url", "confidential"),
    [
        ("http://hooks/sync", ()),
        ("http://hooks/sync?", ()),
        ("http://hooks/sync?dry-run=true", ("dry-run=true",)),
        ("http://hooks/sync?key=hunter%202&x=1", ("key=hunter%202&x=1", "hunter 2")),
    ],
)
def test_query_is_confidential(url: str, confidential: tuple[str, ...]):
    assert parse_url(url, "url").confidential == confidential


@given(st.text())
def test_any_url_is_accepted_or_refused(url: str):
    try:
        endpoint = parse_url(url, "url")
    except InvalidSpec:
        return

    assert endpoint.scheme in {"http", "https"}
    assert endpoint.host
    assert endpoint.url.isascii()


MATCHES = [
    ("hooks", "http://hooks/sync", True),
    ("hooks:80", "http://hooks/sync", True),
    ("hooks", "http://hooks:80/sync", True),
    ("hooks:443", "https://hooks/sync", True),
    ("hooks", "https://hooks:443/sync", True),
    ("HOOKS", "http://hooks/sync", True),
    ("hooks", "http://HOOKS/sync", True),
    ("hooks:8080", "http://hooks:8080/sync", True),
    ("[fd00::1]:8443", "https://[fd00::1]:8443/", True),
    ("[fd00::1]", "https://[FD00::1]/", True),
    ("hooks", "http://hooks:8080/sync", False),
    ("hooks:8080", "http://hooks/sync", False),
    ("hooks:443", "http://hooks/sync", False),
    ("hooks:80", "https://hooks/sync", False),
    ("hooks", "http://hooks.prod/sync", False),
    ("hooks.prod", "http://hooks/sync", False),
    ("", "http://hooks/sync", False),
    ("http://hooks", "http://hooks/sync", False),
    ("hooks/sync", "http://hooks/sync", False),
]


@pytest.mark.parametrize(("config_host", "url", "matched"), MATCHES)
def test_endpoint_config_matches_by_host_and_port_with_default_ports_optional(config_host: str, url: str, *, matched: bool):
    assert matches(config_host, endpoint=parse_url(url, "url")) is matched


def ca(pem: str) -> JsonObject:
    return {"caBundle": {"inline": pem}}


def test_first_endpoint_config_of_the_host_applies():
    configs: list[JsonObject] = [{"host": "other"} | ca("other"), {"host": "hooks"} | ca("first"), {"host": "hooks:80"} | ca("second")]

    assert resolve({"url": "http://hooks/sync"}, configs).connection == Connection(ca_bundle="first")


def test_webhook_with_a_connection_of_its_own_takes_none_from_endpoint_configs():
    config: JsonObject = {"host": "hooks", "basicAuth": {"secretRef": {"name": "auth", "namespace": "prod"}}} | ca("config")

    assert resolve({"url": "http://hooks/sync"} | ca("own"), [config]).connection == Connection(ca_bundle="own")


def test_without_matching_endpoint_config_the_connection_is_plain():
    assert resolve({"url": "http://hooks/sync"}, [{"host": "other"} | ca("other")]).connection == Connection()


def test_endpoint_config_of_another_host_may_be_invalid():
    assert resolve({"url": "http://hooks/sync"}, [{"host": "other", "caBundle": {}}]).connection == Connection()


def test_invalid_endpoint_config_is_named():
    with pytest.raises(InvalidSpec, match=r"endpointConfigs\[1\]\.caBundle"):
        resolve({"url": "http://hooks/sync"}, [{"host": "other"}, {"host": "hooks", "caBundle": {}}])
