"""Who we are to the API server and where it is: kubeconfig or service account, read again as it changes.

A login becomes one `Identity`, made anew when something in it changed: a token file is read again each minute, an exec plugin runs again when its
credentials end, and a 401 makes us read everything again at once.
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
"""How old a token file's content may be: what client-go and the official clients use; kubelet rotates tokens long before they end."""

_MALFORMED = (OSError, ValueError, KeyError, yaml.YAMLError)


class _Source(Protocol):
    """Where a login comes from."""

    async def load(self) -> Login:
        """What is valid now. Raises InvalidKubeconfig, or one of `_MALFORMED`."""
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
    tls_made_of: tuple[object, ...] = field(repr=False)


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
        """Follow what changed in files, and what ran out. What can't be read now stays as it was: whether that still counts, the API server says."""
        try:
            await self._renew(stale)
        except Unavailable as problem:
            log.warning("credentials.not_read", **{fields.ERROR: str(problem)})

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
    if parts.scheme not in {"http", "https"} or not named or parts.port == 0:  # asking for the port raises ValueError for one that is none
        raise ValueError(f"server {login.server_url!r} is no URL of an API server")
    return url


def _proxy_from_environment(server_url: str) -> str | None:
    parts = urlsplit(server_url)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def _tls(login: Login) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=login.authority or None)
    # Many clusters' own authorities lack the extensions that newer Pythons ask for, or are intermediate ones; kubectl takes them.
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
    """Python's TLS takes certificates from files only: this one is nobody else's, and gone at once."""
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
    from metaloop.common.kube.plugins import OfficialKubeconfig  # noqa: PLC0415 - see login.py: what it costs

    return OfficialKubeconfig(paths)


class _ServiceAccount:
    """The pod's own account: its files are read at each load."""

    async def load(self) -> Login:
        """Read the token and the CA."""
        return login_of_pod(POD_FOLDER, os.environ)

    def forget(self) -> None:
        """Nothing is remembered."""


class _PlainKubeconfig:
    """One kubeconfig that takes nothing but reading; it is read at each load."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self) -> Login:
        """Read it, and the files that it names."""
        login = login_of_kubeconfig(self._path)
        if login is None:
            raise ValueError(f"{self._path} came to need a plugin: that takes a restart")
        return login

    def forget(self) -> None:
        """Nothing is remembered."""
