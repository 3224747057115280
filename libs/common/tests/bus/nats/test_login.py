"""Logins by files: TLS with certificates of both sides, and NKeys, at a real nats-server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import nkeys
import pytest

from metaloop.common.bus.nats.connection import Connection, connected
from metaloop.common.bus.nats.login import Login, UrlLogin, login_in
from metaloop.common.errors import Unavailable
from metaloop.common.settings import NatsSettings
from metaloop.common.testing.polling import eventually
from metaloop.devkit import probes
from metaloop.devkit.broker import nats_server
from metaloop.devkit.certs import Authority
from metaloop.devkit.ports import LOOPBACK, free_ports
from metaloop.devkit.processes import Daemon, Program, group

_TLS = """
tls {{ cert_file: "{folder}/server.crt", key_file: "{folder}/server.key", ca_file: "{folder}/ca.crt", verify: true }}
"""


@asynccontextmanager
async def server(folder: Path, *, security: str) -> AsyncIterator[tuple[Daemon, int]]:
    """A nats-server with these lines of configuration, and its port."""
    (port,) = free_ports(1)
    config = folder / "nats.conf"
    config.write_text(f'host: {LOOPBACK}\nport: {port}\njetstream {{ store_dir: "{folder}/store" }}\n{security}')
    program = Program(
        name="nats-server",
        argv=(str(nats_server()), "--config", str(config)),
        ready=probes.tcp_greets(LOOPBACK, port, greeting=b"INFO "),
        folder=folder,
        stop_seconds=0.5,
    )
    async with group() as daemons:
        yield await daemons.start(program), port


def certify(folder: Path, authority: Authority) -> Login:
    """Write certificates of both sides that an authority signed; the login of a client that has them."""
    (folder / "ca.crt").write_bytes(authority.certificate_pem)
    authority.serving("nats", hosts=[LOOPBACK]).write(folder / "server")
    authority.client("reconciler").write(folder / "client")
    return Login(ca_file=f"{folder}/ca.crt", certificate_file=f"{folder}/client.crt", key_file=f"{folder}/client.key")


async def answers(connection: Connection) -> None:
    await connection.check()


async def test_both_sides_show_certificates(tmp_path: Path):
    login = certify(tmp_path, Authority("bus"))

    async with (
        server(tmp_path, security=_TLS.format(folder=tmp_path)) as (_, port),
        connected(f"nats://{LOOPBACK}:{port}", name="test", login=login) as connection,
    ):
        await answers(connection)


async def test_certificates_may_be_replaced_while_the_client_runs(tmp_path: Path):
    """Another authority signs both sides, as when it is about to expire: the client needs no restart."""
    login = certify(tmp_path, Authority("former"))

    async with (
        server(tmp_path, security=_TLS.format(folder=tmp_path)) as (daemon, port),
        connected(f"tls://{LOOPBACK}:{port}", name="test", login=login) as connection,
    ):
        certify(tmp_path, Authority("present"))
        await daemon.kill()
        await eventually(lambda: not connection.is_connected)
        await daemon.start()

        await eventually(lambda: connection.is_connected)
        await answers(connection)


async def test_a_client_logs_in_by_its_nkey(tmp_path: Path):
    seed = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER)
    public = nkeys.from_seed(bytearray(seed)).public_key.decode()  # type: ignore[attr-defined]  # they are bytes
    (tmp_path / "seed").write_bytes(seed)

    async with (
        server(tmp_path, security=f"authorization {{ users: [{{ nkey: {public} }}] }}") as (_, port),
        connected(f"nats://{LOOPBACK}:{port}", name="test", login=Login(nkey_file=f"{tmp_path}/seed")) as connection,
    ):
        await answers(connection)


@pytest.mark.parametrize("field", ["ca_file", "certificate_file", "credentials_file", "nkey_file"])
async def test_a_file_that_cannot_be_read_is_named(field: str):
    login = replace(Login(), **{field: "/nowhere/file.pem"})

    with pytest.raises(Unavailable, match=r"/nowhere/file\.pem"):
        async with connected("nats://127.0.0.1:1", name="test", login=login):
            pass


@pytest.mark.parametrize(
    ("urls", "login"),
    [
        (["nats://u:p@a:4222", "nats://b:4222"], UrlLogin(user="u", password="p")),
        (["nats://b:4222", "nats://secret@a:4222"], UrlLogin(token="secret")),
        (["nats://a:4222"], UrlLogin()),
    ],
    ids=["a user", "a token", "nobody"],
)
def test_login_of_a_url_is_for_all_servers(urls: list[str], login: UrlLogin):
    assert login_in(urls) == login


def test_settings_name_the_files():
    settings = NatsSettings(
        nats_ca_file="ca", nats_certificate_file="crt", nats_key_file="key", nats_credentials_file="c", nats_nkey_file="n"
    )

    assert Login.of(settings) == Login(ca_file="ca", certificate_file="crt", key_file="key", credentials_file="c", nkey_file="n")
    assert Login().tls(servers=["nats://somewhere:4222"]) is None
