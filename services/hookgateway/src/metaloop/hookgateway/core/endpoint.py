"""Resolves a webhook's spec and the matching endpointConfig to an endpoint."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

from metaloop.common.api import fields
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects.unstructured import text
from metaloop.hookgateway.core.address import is_literal
from metaloop.hookgateway.core.connection import PLAIN, Connection, parse_connection, sets_connection

SECRET_LENGTH: Final = 6
"""Shorter values in a URL's query are not secrets but words such as `true` and `prod`, which messages may need."""

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The URL to call and the connection to use. Equal endpoints share a connection pool and a circuit breaker."""

    url: str
    """As in the spec, or built from its service and path. Only characters that HTTP does not allow are escaped."""

    scheme: str
    host: str
    port: int
    connection: Connection = PLAIN

    @property
    def label(self) -> str:
        """The URL for logs and metrics: without its query, where people put tokens."""
        return self.url.partition("?")[0]

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"

    @property
    def confidential(self) -> tuple[str, ...]:
        """The parts of the URL to mask in echoes: its query, and each value in it that is long enough for a secret."""
        query = self.url.partition("?")[2]
        return (query, *(value for _, value in parse_qsl(query) if len(value) >= SECRET_LENGTH)) if query else ()


def resolve(webhook: JsonObject, endpoint_configs: Sequence[JsonObject]) -> Endpoint:
    """The endpoint of a webhook. Raises InvalidSpec, which names the field."""
    url = text(webhook, "url")
    endpoint = parse_url(url, "webhook.url") if url else parse_url(_service_url(webhook), "webhook.service")
    return replace(endpoint, connection=_connection(webhook, endpoint_configs, endpoint))


def parse_url(url: str, path: str) -> Endpoint:
    """The endpoint of a URL. Raises InvalidSpec for anything but an unambiguous http or https URL."""
    parts = _split(url, path)
    host, port = parts.hostname or "", parts.port
    if not _HOST.fullmatch(host):
        raise InvalidSpec(path, "must name a host in ASCII letters, digits, dots and dashes, or an address")
    if _NUMERIC_END.search(host) and not is_literal(host):
        raise InvalidSpec(path, "must write an address in four decimal parts: other forms are ambiguous")
    if port == 0:
        raise InvalidSpec(path, "must not name port 0")
    return Endpoint(url=_ascii(url.partition("#")[0]), scheme=parts.scheme, host=host, port=port or DEFAULT_PORTS[parts.scheme])


def matches(config_host: str, *, endpoint: Endpoint) -> bool:
    """Whether an endpointConfig's `host` is that of the endpoint: same host, same port.

    The scheme's default port is optional.
    """
    host, port = _host_and_port(config_host)
    return host == endpoint.host and (port or DEFAULT_PORTS[endpoint.scheme]) == endpoint.port


_ILLEGAL = re.compile(r"[\x00-\x20\x7f\\]")
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_.])?|[0-9a-f:.]*:[0-9a-f:.]*")
_NUMERIC_END = re.compile(r"(^|\.)([0-9]+|0x[0-9a-f]*)\.?$")
_SERVICE_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?")


def _split(url: str, path: str) -> SplitResult:
    # urlsplit drops tabs and line breaks silently, and browsers read a backslash as a slash. If two parsers can
    # disagree about the host of a URL, checking the host is worthless.
    if _ILLEGAL.search(url):
        raise InvalidSpec(path, "must not contain spaces, control characters or backslashes")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        # The parser's message quotes the URL, and what it takes for a port may be a password.
        raise InvalidSpec(path, "is not a URL: its host or port is malformed") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise InvalidSpec(path, f"must be an http or https URL, not {parts.scheme[:20] or 'one without scheme'}")
    if "@" in parts.netloc:
        raise InvalidSpec(path, "must not contain a user name or password: use basicAuth or authorization")
    return parts


def _ascii(url: str) -> str:
    return url if url.isascii() else quote(url, safe="%/:?#[]@!$&'()*+,;=-._~")


def _service_url(webhook: JsonObject) -> str:
    service, path = fields.object_at(webhook, "service", "webhook"), text(webhook, "path")
    if service is None or not path:
        raise InvalidSpec("webhook", "needs a url, or a service and a path")
    if not path.startswith("/"):
        raise InvalidSpec("webhook.path", "must begin with a slash")
    # Upper case is valid: Metacontroller uses the value as the URL's scheme, which is not case-sensitive.
    lowered: JsonObject = {"protocol": text(service, "protocol").lower()}
    protocol = fields.one_of(lowered, "protocol", "webhook.service", choices=("http", "https"), default="http")
    name, namespace = _service_part(service, "name"), _service_part(service, "namespace")
    return f"{protocol}://{name}.{namespace}:{_port(service)}{path}"


def _service_part(service: JsonObject, key: str) -> str:
    part = fields.required_text(service, key, "webhook.service")
    if not _SERVICE_PART.fullmatch(part):
        raise InvalidSpec(f"webhook.service.{key}", "must consist of letters, digits, dots and dashes")
    return part


def _port(service: JsonObject) -> int:
    port = service.get("port")
    if port is None or port == 0:
        return 80
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        raise InvalidSpec("webhook.service.port", "must be a port number")
    return port


def _connection(webhook: JsonObject, endpoint_configs: Sequence[JsonObject], endpoint: Endpoint) -> Connection:
    """The webhook's own connection if it sets any part, else the first matching endpointConfig's, else a plain one."""
    if sets_connection(webhook):
        return parse_connection(webhook, "webhook")
    for index, config in enumerate(endpoint_configs):
        if matches(text(config, "host"), endpoint=endpoint):
            return parse_connection(config, f"endpointConfigs[{index}]")
    return PLAIN


_HOST_PORT = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:/]+))(?::([0-9]{1,5}))?")


def _host_and_port(config_host: str) -> tuple[str, int | None]:
    parts = _HOST_PORT.fullmatch(config_host.strip().lower())
    if parts is None:
        return "", None
    return parts[1] or parts[2], int(parts[3]) if parts[3] else None
