"""The API server's address and our credentials, from a kubeconfig or the pod's service account; kept up to date.

A login becomes one `Identity`, which is replaced when the login changes: token files are read again every minute, an
exec plugin runs again when its credentials expire, and a 401 has everything read again at once.
"""

import asyncio
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml

from metaloop.common.errors import Unavailable
from metaloop.common.kube.errors import InvalidKubeconfig
from metaloop.common.kube.login import HOST_VARIABLE, POD_FOLDER, Login, login_of_kubeconfig, login_of_pod
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

REREAD_SECONDS = 60.0
"""The interval for reading files again, as in client-go. The kubelet rotates tokens long before they expire."""

_MALFORMED = (OSError, ValueError, KeyError, yaml.YAMLError)


class _Source(Protocol):
    """The source of a login."""

    async def load(self) -> Login:
        """The current login. Raises InvalidKubeconfig, or one of `_MALFORMED`."""
        ...

    def forget(self) -> None:
        """Drop cached credentials, so that the next `load` fetches new ones."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Everything that a connection and its requests need to be accepted."""

    server_url: str
    authorization: str = field(repr=False)
    """The value of the Authorization header; empty with a client certificate."""
    tls: ssl.SSLContext | None
    """None for plain HTTP."""
    server_hostname: str | None
    proxy_url: str | None
    tls_made_of: tuple[object, ...] = field(repr=False)


class Credentials:
    """The current identity, and how to renew it."""

    def __init__(self, source: _Source, identity: Identity) -> None:
        self._source = source
        self._identity = identity
        self._renewing = asyncio.Lock()
        self._clock = asyncio.get_running_loop().time
        self._due = self._clock() + REREAD_SECONDS

    @classmethod
    async def read(cls, kubeconfig: str = "") -> "Credentials":
        """The credentials of `kubeconfig`, else of $KUBECONFIG, else of this pod, else of ~/.kube/config.

        Raises InvalidKubeconfig.
        """
        source = _source(kubeconfig)
        return cls(source, await _identity(source, before=None))

    @property
    def identity(self) -> Identity:
        """The identity as of the last reading."""
        return self._identity

    @property
    def is_due(self) -> bool:
        """Whether it should be read again before it is used."""
        return self._clock() >= self._due

    async def reread(self, stale: Identity) -> None:
        """Read the login again, unless another caller has replaced `stale`.

        On failure the identity stays: the API server decides if it is still valid.
        """
        try:
            await self._renew(stale)
        except Unavailable as problem:
            log.warning("credentials.not_read", **{fields.ERROR: str(problem)})

    async def replace_rejected(self, rejected: Identity) -> None:
        """Read everything again because the API server rejected `rejected`, unless that was done already.

        Raises Unavailable.
        """
        if self._identity is rejected:
            self._source.forget()
        await self._renew(rejected)

    async def _renew(self, stale: Identity) -> None:
        # The lock is held while a plugin runs or a token is fetched, so that concurrent requests share one refresh.
        async with self._renewing:
            if self._identity is not stale:
                return
            self._due = self._clock() + REREAD_SECONDS
            try:
                self._identity = await _identity(self._source, before=stale)
            except InvalidKubeconfig as problem:
                raise Unavailable(f"credentials can't be read again: {problem}") from problem


async def _identity(source: _Source, *, before: Identity | None) -> Identity:
    try:
        login = await source.load()
        made_of = (login.authority, login.certificate, login.key, login.verifies)
        kept = before.tls if before and before.tls_made_of == made_of else None
        server_url = _server_url(login)
        return Identity(
            server_url=server_url,
            authorization=login.authorization,
            tls=(kept or _tls(login)) if server_url.startswith("https:") else None,
            server_hostname=login.server_hostname,
            proxy_url=login.proxy_url or _proxy_from_environment(server_url),
            tls_made_of=made_of,
        )
    except _MALFORMED as problem:
        raise InvalidKubeconfig(f"{type(problem).__name__}: {problem}") from problem


def _server_url(login: Login) -> str:
    url = login.server_url.rstrip("/")
    parts = urlsplit(url)
    try:
        named = (parts.hostname or "").encode("idna")
    except UnicodeError:
        named = b""
    # `port` raises ValueError for a port that is not a number.
    if parts.scheme not in {"http", "https"} or not named or parts.port == 0:
        raise ValueError(f"server {login.server_url!r} is not the URL of an API server")
    return url


def _proxy_from_environment(server_url: str) -> str | None:
    parts = urlsplit(server_url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _tls(login: Login) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=login.authority or None)
    # Many clusters' CAs lack the extensions that newer Pythons require, or are intermediate CAs. kubectl accepts them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if login.certificate:
        _load_certificate(context, login)
    if not login.verifies:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_certificate(context: ssl.SSLContext, login: Login) -> None:
    """Python's TLS loads certificates from files only. This file is readable by us alone, and deleted at once."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(f"{login.certificate}\n{login.key}\n")
        file.flush()
        context.load_cert_chain(file.name)


def _source(kubeconfig: str) -> _Source:
    paths = kubeconfig or os.environ.get("KUBECONFIG", "")
    if not paths and HOST_VARIABLE in os.environ:
        return _ServiceAccount()
    return _kubeconfig(paths or str(Path.home() / ".kube" / "config"))


def _kubeconfig(paths: str) -> _Source:
    try:
        is_plain = os.pathsep not in paths and login_of_kubeconfig(Path(paths)) is not None
    except FileNotFoundError as problem:
        raise InvalidKubeconfig(f"there is no kubeconfig at {paths}: {problem}") from problem
    except _MALFORMED as problem:
        raise InvalidKubeconfig(f"{paths}: {type(problem).__name__}: {problem}") from problem
    if is_plain:
        return _PlainKubeconfig(Path(paths))
    from metaloop.common.kube.plugins import OfficialKubeconfig  # noqa: PLC0415 - see login.py for its cost

    return OfficialKubeconfig(paths)


class _ServiceAccount:
    """The pod's service account; its files are read at each `load`."""

    async def load(self) -> Login:
        """Read the token and the CA."""
        return login_of_pod(POD_FOLDER, os.environ)

    def forget(self) -> None:
        """Do nothing: nothing is cached."""


class _PlainKubeconfig:
    """One kubeconfig that needs nothing but reading files; it is read at each `load`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self) -> Login:
        """Read the kubeconfig and the files that it names."""
        login = login_of_kubeconfig(self._path)
        if login is None:
            raise ValueError(f"{self._path} now needs a plugin, which takes a restart")
        return login

    def forget(self) -> None:
        """Do nothing: nothing is cached."""
