"""Certificates that strict TLS verifiers accept."""

import asyncio
import ssl
from pathlib import Path

import pytest

from metaloop.devkit.certs import Authority
from metaloop.devkit.ports import LOOPBACK

STRICT = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN


async def user_seen_by_server(tmp_path: Path, *, authority: Authority, client_of: Authority) -> dict[str, str]:
    """The subject of the client's certificate, as a server that trusts `authority` sees it."""
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    authority.serving("server", hosts=[LOOPBACK]).write(tmp_path / "server")
    client_of.client("ada", group="admins").write(tmp_path / "client")
    seen: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        certificate = writer.get_extra_info("peercert")
        seen.set_result({name: value for ((name, value),) in certificate["subject"]})
        writer.close()

    server = await asyncio.start_server(greet, LOOPBACK, 0, ssl=context(tmp_path, "server", ssl.Purpose.CLIENT_AUTH))
    async with server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=context(tmp_path, "client", ssl.Purpose.SERVER_AUTH))
        try:
            await reader.read()
        finally:
            writer.close()
    if not seen.done():
        raise ConnectionError("the server accepted no client")
    return seen.result()


def context(folder: Path, name: str, purpose: ssl.Purpose) -> ssl.SSLContext:
    made = ssl.create_default_context(purpose, cafile=folder / "ca.crt")
    made.verify_flags |= STRICT
    made.verify_mode = ssl.CERT_REQUIRED
    made.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return made


async def test_a_client_certificate_names_its_user_and_group(tmp_path: Path) -> None:
    authority = Authority("ca")

    seen = await user_seen_by_server(tmp_path, authority=authority, client_of=authority)

    assert (seen["organizationName"], seen["commonName"]) == ("admins", "ada")


async def test_a_certificate_of_another_authority_is_refused(tmp_path: Path) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await user_seen_by_server(tmp_path, authority=Authority("ca"), client_of=Authority("ca"))


def test_a_private_key_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    Authority("ca").client("ada").write(tmp_path / "client")

    assert (tmp_path / "client.key").stat().st_mode & 0o077 == 0
