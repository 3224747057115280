"""Who we are to the API server and where it is: kubeconfig or service account, read again as it changes.

The official client's loaders read files, run exec plugins and refresh tokens. What they yield becomes one `Identity`, made anew when
something in it changed: a token file is read again each minute, an exec plugin runs again when its credentials end, and a
401 makes us read everything again at once.
"""

import asyncio
import os
import ssl
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import incluster_config, kube_config
from kubernetes.aio.config.config_exception import ConfigException

from metaloop.common.errors import Unavailable
from metaloop.common.kube.errors import InvalidKubeconfig

REREAD_SECONDS = 60.0
"""How old a token file's content may be: what client-go and the official clients use; kubelet rotates tokens long before they end."""

_NEVER = datetime.max.replace(tzinfo=UTC)
_MALFORMED = (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, yaml.YAMLError)
"""How the official loaders fail: they check little, and a file that is no kubeconfig shows as any of these."""


class _Source(Protocol):
    """Where credentials come from."""

    async def load(self, configuration: Configuration) -> None:
        """Put what is valid now into `configuration`."""
        ...

    def forget(self) -> None:
        """Take nothing of what was fetched before as valid any more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """All that a connection and its requests need to be accepted."""

    server_url: str
    authorization: str = field(repr=False)
    """The value of the header, or nothing for client certificates; never shown."""
    tls: ssl.SSLContext | None
    """None for a server without TLS."""
    server_hostname: str | None
    proxy_url: str | None
    files: tuple[str, ...]
    """Which certificate files, in which state, `tls` was made of."""


class Credentials:
    """The present identity, and how to renew it."""

    def __init__(self, source: _Source, identity: Identity) -> None:
        self._source = source
        self._identity = identity
        self._renewing = asyncio.Lock()
        self._due = asyncio.get_running_loop().time() + REREAD_SECONDS

    @classmethod
    async def read(cls, kubeconfig: str = "") -> "Credentials":
        """The credentials of a kubeconfig, else of $KUBECONFIG, of the pod we run in, or of ~/.kube/config. Raises InvalidKubeconfig."""
        source = _source(kubeconfig)
        return cls(source, await _identity(source, before=None))

    @property
    def identity(self) -> Identity:
        """The identity as it was read last."""
        return self._identity

    @property
    def is_due(self) -> bool:
        """Whether it was read so long ago that it should be renewed before use."""
        return asyncio.get_running_loop().time() >= self._due

    async def reread(self, stale: Identity) -> None:
        """Follow what changed in files, and what ran out. Raises Unavailable."""
        await self._renew(stale)

    async def replace_rejected(self, rejected: Identity) -> None:
        """Read everything again since the API server didn't accept `rejected`, unless that has been done already. Raises Unavailable."""
        if self._identity is rejected:
            self._source.forget()
        await self._renew(rejected)

    async def _renew(self, stale: Identity) -> None:
        # The lock is held while a plugin runs or a token is fetched: that is what makes a hundred requests share one refresh.
        async with self._renewing:
            if self._identity is not stale:
                return
            self._due = asyncio.get_running_loop().time() + REREAD_SECONDS
            try:
                self._identity = await _identity(self._source, before=stale)
            except InvalidKubeconfig as problem:
                raise Unavailable(f"credentials can't be read again: {problem}") from problem


async def _identity(source: _Source, *, before: Identity | None) -> Identity:
    configuration = Configuration()
    try:
        await source.load(configuration)
        found = _without_tls(configuration)
        if not found.server_url.startswith("https:"):
            return found
        kept = before.tls if before and before.files == found.files else None
        return replace(found, tls=kept or _tls(configuration))
    except _MALFORMED as problem:
        raise InvalidKubeconfig(f"{type(problem).__name__}: {problem}") from problem


def _without_tls(configuration: Configuration) -> Identity:
    server_url = str(configuration.host).rstrip("/")
    files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
    return Identity(
        server_url=server_url,
        authorization=" ".join(configuration.api_key.get("BearerToken", "").split()),
        tls=None,
        server_hostname=configuration.tls_server_name,
        proxy_url=configuration.proxy or _proxy_from_environment(server_url),
        files=(str(configuration.verify_ssl), *(_state_of(path) for path in files)),
    )


def _state_of(path: str | None) -> str:
    return f"{path} {Path(path).stat().st_mtime_ns}" if path else ""


def _proxy_from_environment(server_url: str) -> str | None:
    parts = urlsplit(server_url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _tls(configuration: Configuration) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Many clusters' own authorities lack the extensions that newer Pythons ask for; kubectl takes them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _source(kubeconfig: str) -> _Source:
    paths = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not paths and incluster_config.SERVICE_HOST_ENV_NAME in os.environ:
        return _ServiceAccount()
    return _Kubeconfig(paths or str(Path.home() / ".kube" / "config"))


class _ServiceAccount:
    """The pod's own account: its files are read at each load."""

    async def load(self, configuration: Configuration) -> None:
        """Read the token and the CA."""
        incluster_config.load_incluster_config(client_configuration=configuration, try_refresh_token=False)

    def forget(self) -> None:
        """Nothing is remembered."""


class _Kubeconfig:
    """One or more kubeconfig files; remembers when a plugin's credentials end, and tokens that were refreshed."""

    def __init__(self, paths: str) -> None:
        try:
            config = kube_config.KubeConfigMerger(paths).config
            if config is None:
                raise InvalidKubeconfig(f"there is no kubeconfig at {paths}")
            self._loader = kube_config.KubeConfigLoader(config_dict=config, config_base_path=None)  # pyright: ignore[reportArgumentType]
            user = config["users"].get_with_name(self._loader.current_context["context"].get("user"), safe=True)
            self._uses_plugin = bool(user and "exec" in user["user"])
        except _MALFORMED as problem:
            raise InvalidKubeconfig(f"{paths}: {type(problem).__name__}: {problem}") from problem

    async def load(self, configuration: Configuration) -> None:
        """Read the files again, and run a plugin again if its credentials ran out."""
        await self._loader.load_and_set(configuration)
        if not self._uses_plugin:
            return
        if not configuration.api_key.get("BearerToken") and not configuration.cert_file:
            raise InvalidKubeconfig("the exec plugin gave no credentials; the log says why")
        # As client-go does: credentials without an end are kept until they are rejected.
        if not hasattr(self._loader, "exec_plugin_expiry"):
            self._loader.exec_plugin_expiry = _NEVER

    def forget(self) -> None:
        """Let the next load run the plugin anew."""
        if self._uses_plugin:
            for fetched in ("exec_plugin_expiry", "token", "cert_file", "key_file"):
                vars(self._loader).pop(fetched, None)
