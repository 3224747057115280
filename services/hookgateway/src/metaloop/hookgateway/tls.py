"""Builds TLS contexts from credentials.

TLS 1.2 or newer, certificates and names always verified, no way to turn that off.
"""

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.errors import CredentialsInvalid


def context_for(credentials: Credentials) -> ssl.SSLContext:
    """A context that trusts the CA bundle (or else the system's roots) and shows the client certificate, if any.

    Raises CredentialsInvalid for a bundle without a certificate, and for a malformed certificate or key or a pair that
    does not match.
    """
    if not credentials.concern_tls:
        return _plain_context()
    context = _new_context()
    _trust(context, credentials.ca_pem)
    if credentials.certificate_pem:
        _identify(context, credentials)
    return context


@cache
def _plain_context() -> ssl.SSLContext:
    """One context for all endpoints without credentials: loading the system's roots takes tens of milliseconds."""
    context = _new_context()
    _trust(context, None)
    return context


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies certificate and host name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trust(context: ssl.SSLContext, ca_pem: str | None) -> None:
    if ca_pem is None:
        context.load_default_certs()
        return
    # Each certificate in the bundle is a trust anchor, an intermediate authority too.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    # Certificates are ASCII. The comments between them, which OpenSSL skips, may be in any script.
    certificates = ca_pem.encode("ascii", errors="ignore").decode("ascii")
    try:
        context.load_verify_locations(cadata=certificates)
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsInvalid(f"caBundle holds no valid PEM certificate: {error}") from error


def _identify(context: ssl.SSLContext, credentials: Credentials) -> None:
    try:
        with _readable(credentials.certificate_pem + b"\n" + credentials.private_key_pem) as path:
            context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise CredentialsInvalid(f"clientTLS holds no certificate with its private key: {error}") from error


def _no_password() -> str:
    """Called for an encrypted key. Without it, OpenSSL would prompt at the terminal and wait."""
    raise ValueError("the private key is encrypted")


@contextmanager
def _readable(pem: bytes) -> Iterator[str]:
    """A path where OpenSSL, which reads keys only from files, finds these bytes.

    In memory if the system can; removed afterwards.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, pem)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile() as file:  # created 0600
        file.write(pem)
        file.flush()
        yield file.name
