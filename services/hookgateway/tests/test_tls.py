"""TLS with real authorities and certificates: who is trusted, and how we show who we are."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from driving import Shelf, asking
from webserver import WebServer, answers, response, serving

from metaloop.common.hooks.call import Accepted, Rejected, Verdict
from metaloop.common.json import JsonObject
from metaloop.devkit.certs import Authority, KeyPair
from metaloop.hookgateway.core.connection import Referent
from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.errors import CredentialsInvalid
from metaloop.hookgateway.tls import context_for

OURS, THEIRS = Authority("ours"), Authority("theirs")
SECRET = Referent("Secret", "prod", "tls")
REF: JsonObject = {"name": "tls", "namespace": "prod"}
OK = Accepted(body=b"{}")


def server_side(pair: KeyPair, *, clients_of: Authority | None = None, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = newest
    with tempfile.TemporaryDirectory() as folder:
        pair.write(Path(folder) / "server")
        context.load_cert_chain(Path(folder) / "server.crt", Path(folder) / "server.key")
    if clients_of is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients_of.certificate_pem.decode())
    return context


def trusting(authority: Authority) -> JsonObject:
    return {"caBundle": {"inline": authority.certificate_pem.decode()}}


def accepted(verdict: Verdict) -> bool:
    return isinstance(verdict, Accepted)


def refused(verdict: Verdict) -> bool:
    return isinstance(verdict, Rejected)


def why(verdict: Verdict) -> str:
    assert isinstance(verdict, Rejected), verdict
    return verdict.fault.wire


@pytest.fixture
async def hook() -> AsyncIterator[WebServer]:
    """A webhook with a certificate of ours."""
    async with serving(answers(200), tls=server_side(OURS.serving("hook", hosts=["localhost", "127.0.0.1"]))) as server:
        yield server


async def test_certificate_of_the_given_authority_is_trusted(hook: WebServer):
    async with asking() as gateway:
        assert await gateway.ask({"url": hook.url(), **trusting(OURS)}) == OK


async def test_certificate_that_is_itself_in_the_bundle_is_trusted_though_its_authority_is_not():
    """As an intermediate authority is: what Go's clients, the original among them, are given to trust needs nobody above it."""
    pair = OURS.serving("hook", hosts=["localhost"])
    async with serving(answers(200), tls=server_side(pair)) as hook, asking() as gateway:
        assert await gateway.ask({"url": hook.url(), "caBundle": {"inline": pair.public_pem.decode()}}) == OK


async def test_certificate_for_an_address_is_trusted(hook: WebServer):
    async with asking() as gateway:
        assert await gateway.ask({"url": f"https://127.0.0.1:{hook.port}/", **trusting(OURS)}) == OK


async def test_certificate_of_another_authority_is_not(hook: WebServer):
    async with asking() as gateway:
        assert why(await gateway.ask({"url": hook.url(), **trusting(THEIRS)})) == "TlsFailed"

    assert hook.requests == []


async def test_without_authority_the_systems_roots_count(hook: WebServer):
    async with asking() as gateway:
        assert why(await gateway.ask(hook.url())) == "TlsFailed"


async def test_endpoint_configs_bring_the_authority_of_their_host(hook: WebServer):
    configs: list[JsonObject] = [{"host": "other", **trusting(THEIRS)}, {"host": f"localhost:{hook.port}", **trusting(OURS)}]
    async with asking() as gateway:
        assert await gateway.ask(hook.url(), endpoint_configs=configs) == OK


async def test_certificate_for_another_name_is_refused():
    async with serving(answers(200), tls=server_side(OURS.serving("hook", hosts=["elsewhere"]))) as hook, asking() as gateway:
        verdict = await gateway.ask({"url": hook.url(), **trusting(OURS)})

    assert why(verdict) == "TlsFailed"


async def test_name_is_sent_with_the_handshake():
    """Behind an ingress, it decides which certificate is shown."""
    asked: list[str | None] = []
    tls = server_side(OURS.serving("hook", hosts=["localhost"]))
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    async with serving(answers(200), tls=tls) as hook, asking() as gateway:
        await gateway.ask({"url": hook.url(), **trusting(OURS)})

    assert asked == ["localhost"]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1")
async def test_nothing_older_than_tls_1_2_is_spoken():
    tls = server_side(OURS.serving("hook", hosts=["localhost"]), newest=ssl.TLSVersion.TLSv1_1)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    async with serving(answers(200), tls=tls) as hook, asking() as gateway:
        assert why(await gateway.ask({"url": hook.url(), **trusting(OURS)})) == "TlsFailed"


async def test_http_where_https_is_asked_for_is_refused():
    async def answers_at_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(400))
        writer.close()

    async with await asyncio.start_server(answers_at_once, "127.0.0.1", 0) as hook, asking() as gateway:
        assert why(await gateway.ask(f"https://127.0.0.1:{hook.sockets[0].getsockname()[1]}/")) == "TlsFailed"


@pytest.fixture
async def demanding_hook() -> AsyncIterator[WebServer]:
    """A webhook that wants to see a certificate of ours."""
    tls = server_side(OURS.serving("hook", hosts=["localhost"]), clients_of=OURS)
    async with serving(answers(200), tls=tls) as server:
        yield server


def client_tls(hook: WebServer) -> JsonObject:
    return {"url": hook.url(), "clientTLS": {"secretRef": REF}, **trusting(OURS)}


def shelf_with(pair: KeyPair) -> Shelf:
    shelf = Shelf()
    shelf.put(SECRET, tls__crt=pair.public_pem, tls__key=pair.private_pem)
    return shelf


async def test_client_certificate_is_shown(demanding_hook: WebServer):
    async with asking(shelf_with(OURS.client("metaloop")).follow) as gateway:
        assert await gateway.ask(client_tls(demanding_hook)) == OK


async def test_webhook_that_misses_a_client_certificate_says_so_to_the_user(demanding_hook: WebServer):
    async with asking() as gateway:
        assert why(await gateway.ask({"url": demanding_hook.url(), **trusting(OURS)})) in {"TlsFailed", "ConnectionLost"}

    assert demanding_hook.requests == []


async def test_client_certificate_of_another_authority_gets_nowhere(demanding_hook: WebServer):
    async with asking(shelf_with(THEIRS.client("metaloop")).follow) as gateway:
        assert why(await gateway.ask(client_tls(demanding_hook))) in {"TlsFailed", "ConnectionLost"}


async def test_rotated_client_certificate_is_used_by_the_next_call(demanding_hook: WebServer):
    shelf = shelf_with(THEIRS.client("metaloop"))
    async with asking(shelf.follow) as gateway:
        assert why(await gateway.ask(client_tls(demanding_hook))) in {"TlsFailed", "ConnectionLost"}

        pair = OURS.client("metaloop")
        shelf.put(SECRET, tls__crt=pair.public_pem, tls__key=pair.private_pem)

        await gateway.ask_until(accepted, client_tls(demanding_hook))


async def test_rotated_authority_is_used_by_the_next_call(hook: WebServer):
    shelf, authority = Shelf(), Referent("ConfigMap", "prod", "roots")
    webhook: JsonObject = {"url": hook.url(), "caBundle": {"configMapRef": {"name": "roots", "namespace": "prod"}}}
    shelf.put(authority, ca__crt=OURS.certificate_pem)
    async with asking(shelf.follow) as gateway:
        assert await gateway.ask(webhook) == OK

        shelf.put(authority, ca__crt=THEIRS.certificate_pem)

        await gateway.ask_until(refused, webhook)
        shelf.put(authority, ca__crt=THEIRS.certificate_pem + OURS.certificate_pem)
        await gateway.ask_until(accepted, webhook)


PAIR, OTHER_PAIR = OURS.client("one"), OURS.client("another")


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials(ca_pem=""),
        Credentials(ca_pem="no PEM"),
        Credentials(ca_pem="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
        Credentials(ca_pem=PAIR.private_pem.decode()),
        Credentials(certificate_pem=b"no PEM", private_key_pem=b"no PEM"),
        Credentials(certificate_pem=PAIR.public_pem, private_key_pem=b"no PEM"),
        Credentials(certificate_pem=PAIR.public_pem, private_key_pem=OTHER_PAIR.private_pem),
        Credentials(certificate_pem=PAIR.private_pem, private_key_pem=PAIR.public_pem[:-30]),
    ],
    ids=["empty", "no PEM", "no certificate", "a key", "no pair", "no key", "another's key", "swapped"],
)
def test_unusable_certificates_are_invalid_and_not_repeated(credentials: Credentials):
    with pytest.raises(CredentialsInvalid) as refusal:
        context_for(credentials)

    assert "BEGIN" not in str(refusal.value)


def test_text_around_certificates_does_no_harm():
    context = context_for(Credentials(ca_pem=f"# ours\n{OURS.certificate_pem.decode()}\nand theirs\n{THEIRS.certificate_pem.decode()}\n"))

    assert len(context.get_ca_certs()) == 2


def test_names_of_authorities_around_certificates_may_be_in_any_script():
    """As in the bundles that systems ship, which say in a comment whose each certificate is."""
    context = context_for(Credentials(ca_pem=f"# Főtanúsítvány\n{OURS.certificate_pem.decode()}"))

    assert len(context.get_ca_certs()) == 1


@pytest.fixture(params=[Credentials(), Credentials(ca_pem=OURS.certificate_pem.decode())], ids=["system", "given"])
def context(request: pytest.FixtureRequest) -> ssl.SSLContext:
    """A context of ours, with the system's roots and with given ones."""
    return context_for(request.param)


def test_verification_is_always_on(context: ssl.SSLContext):
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


async def test_broken_certificates_are_told_even_if_the_url_is_http():
    async with serving(answers(200)) as hook, asking() as gateway:
        assert why(await gateway.ask({"url": hook.url(), "caBundle": {"inline": "no PEM"}})) == "CredentialsInvalid"
