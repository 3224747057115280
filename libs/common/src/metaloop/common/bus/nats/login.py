"""How a client knows the NATS servers, and how they know it: certificates, a credentials file, or an NKey.

A user and a password, or a token, are part of the URL instead.

Files may be replaced while a service runs, as cert-manager does: certificates are read again when the connection is
lost, and a credentials file at each login. An NKey is read at the start.
"""

import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from metaloop.common.errors import Unavailable
from metaloop.common.settings import NatsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """The files by which a client logs in. An empty path is no file."""

    ca_file: str = ""
    """The CA of the servers. With it, the connection has TLS, whatever the URL says."""
    certificate_file: str = ""
    """The client's certificate chain."""
    key_file: str = ""
    credentials_file: str = ""
    """A JWT with its NKey."""
    nkey_file: str = ""
    """The seed of an NKey."""

    @classmethod
    def of(cls, settings: NatsSettings) -> "Login":
        """The files that the settings name."""
        return cls(
            ca_file=settings.nats_ca_file,
            certificate_file=settings.nats_certificate_file,
            key_file=settings.nats_key_file,
            credentials_file=settings.nats_credentials_file,
            nkey_file=settings.nats_nkey_file,
        )

    def tls(self, *, servers: Sequence[str]) -> ssl.SSLContext | None:
        """What the client checks and shows; None where neither the files nor the servers' URLs ask for TLS.

        Raises Unavailable where a file cannot be read.
        """
        if not (self.ca_file or self.certificate_file or any(server.startswith("tls:") for server in servers)):
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca_file or None)
        except OSError as problem:
            raise Unavailable(f"the CA of NATS in {self.ca_file}: {problem}") from problem
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(context)
        return context

    def load(self, context: ssl.SSLContext) -> None:
        """Have the next connections use what the files hold now. Raises Unavailable where one cannot be read."""
        try:
            if self.ca_file:
                context.load_verify_locations(cafile=self.ca_file)
            if self.certificate_file:
                context.load_cert_chain(self.certificate_file, self.key_file or None)
        except OSError as problem:
            raise Unavailable(f"the certificate for NATS in {self.certificate_file}: {problem}") from problem

    def check(self) -> None:
        """Return where the credentials and NKey files can be read. Raises Unavailable with the one that cannot."""
        for path in filter(None, (self.credentials_file, self.nkey_file)):
            try:
                Path(path).read_bytes()
            except OSError as problem:
                raise Unavailable(f"the login for NATS in {path}: {problem}") from problem


NO_FILES = Login()


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlLogin:
    """The user with its password, or the token, of a URL. None where there is none."""

    user: str | None = None
    password: str | None = None
    token: str | None = None


def login_in(servers: Iterable[str]) -> UrlLogin:
    """The login of the first URL that has one. It is for all servers, also for those that servers tell of.

    Nothing is said of a URL that can't be read: the client says it.
    """
    for server in servers:
        try:
            parts = urlsplit(server)
        except ValueError:
            continue
        if parts.password is not None:
            return UrlLogin(user=parts.username, password=parts.password)
        if parts.username is not None:
            return UrlLogin(token=parts.username)
    return UrlLogin()
