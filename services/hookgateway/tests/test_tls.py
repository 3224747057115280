"""TLS with real authorities and certificates: which webhooks are trusted, and which client certificate is shown."""

import asyncio
import ssl
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from in_process import FakeCluster, running_gateway
from webserver import WebServer, answers, response, serving

from metaloop.common.hooks.call import Accepted, Rejected, Verdict
from metaloop.common.json import JsonObject
from metaloop.devkit.certs import Authority, KeyPair
from metaloop.hookgateway.core.connection import ObjectRef
from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.errors import CredentialsInvalid
from metaloop.hookgateway.tls import context_for

OURS, THEIRS = Authority("ours"), Authority("theirs")
SECRET = ObjectRef("Secret", "prod", "tls")
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
    async with running_gateway() as gateway:
        assert await gateway.call({"url": hook.url(), **trusting(OURS)}) == OK


async def test_certificate_in_the_bundle_is_trusted_without_its_authority():
    """An intermediate authority is a trust anchor too, as for Go's clients such as Metacontroller."""
    pair = OURS.serving("hook", hosts=["localhost"])
    async with serving(answers(200), tls=server_side(pair)) as hook, running_gateway() as gateway:
        assert await gateway.call({"url": hook.url(), "caBundle": {"inline": pair.public_pem.decode()}}) == OK


async def test_certificate_for_an_address_is_trusted(hook: WebServer):
    async with running_gateway() as gateway:
        assert await gateway.call({"url": f"https://127.0.0.1:{hook.port}/", **trusting(OURS)}) == OK


async def test_certificate_of_another_authority_is_not_trusted(hook: WebServer):
    async with running_gateway() as gateway:
        assert why(await gateway.call({"url": hook.url(), **trusting(THEIRS)})) == "TlsFailed"

    assert hook.requests == []


async def test_without_a_ca_bundle_the_systems_roots_are_trusted(hook: WebServer):
    async with running_gateway() as gateway:
        assert why(await gateway.call(hook.url())) == "TlsFailed"


async def test_endpoint_config_sets_the_authority_for_its_host(hook: WebServer):
    configs: list[JsonObject] = [{"host": "other", **trusting(THEIRS)}, {"host": f"localhost:{hook.port}", **trusting(OURS)}]
    async with running_gateway() as gateway:
        assert await gateway.call(hook.url(), endpoint_configs=configs) == OK


async def test_certificate_for_another_name_is_refused():
    async with serving(answers(200), tls=server_side(OURS.serving("hook", hosts=["elsewhere"]))) as hook, running_gateway() as gateway:
        verdict = await gateway.call({"url": hook.url(), **trusting(OURS)})

    assert why(verdict) == "TlsFailed"


async def test_server_name_is_sent_in_the_handshake():
    """An ingress chooses its certificate by it."""
    asked: list[str | None] = []
    tls = server_side(OURS.serving("hook", hosts=["localhost"]))
    tls.sni_callback = lambda _socket, name, _context: asked.append(name)
    async with serving(answers(200), tls=tls) as hook, running_gateway() as gateway:
        await gateway.call({"url": hook.url(), **trusting(OURS)})

    assert asked == ["localhost"]


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1")
async def test_tls_older_than_1_2_is_refused():
    tls = server_side(OURS.serving("hook", hosts=["localhost"]), newest=ssl.TLSVersion.TLSv1_1)
    tls.set_ciphers("ALL:@SECLEVEL=0")
    async with serving(answers(200), tls=tls) as hook, running_gateway() as gateway:
        assert why(await gateway.call({"url": hook.url(), **trusting(OURS)})) == "TlsFailed"


async def test_http_on_an_https_url_is_refused():
    async def answers_at_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(400))
        writer.close()

    async with await asyncio.start_server(answers_at_once, "127.0.0.1", 0) as hook, running_gateway() as gateway:
        assert why(await gateway.call(f"https://127.0.0.1:{hook.sockets[0].getsockname()[1]}/")) == "TlsFailed"


@pytest.fixture
async def demanding_hook() -> AsyncIterator[WebServer]:
    """A webhook that requires a client certificate of ours."""
    tls = server_side(OURS.serving("hook", hosts=["localhost"]), clients_of=OURS)
    async with serving(answers(200), tls=tls) as server:
        yield server


def client_tls(hook: WebServer) -> JsonObject:
    return {"url": hook.url(), "clientTLS": {"secretRef": REF}, **trusting(OURS)}


def cluster_with(pair: KeyPair) -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(SECRET, tls__crt=pair.public_pem, tls__key=pair.private_pem)
    return cluster


async def test_client_certificate_is_sent(demanding_hook: WebServer):
    async with running_gateway(cluster_with(OURS.client("metaloop"))) as gateway:
        assert await gateway.call(client_tls(demanding_hook)) == OK


async def test_missing_client_certificate_is_reported_to_the_user(demanding_hook: WebServer):
    async with running_gateway() as gateway:
        assert why(await gateway.call({"url": demanding_hook.url(), **trusting(OURS)})) in {"TlsFailed", "ConnectionLost"}

    assert demanding_hook.requests == []


async def test_client_certificate_of_another_authority_is_refused(demanding_hook: WebServer):
    async with running_gateway(cluster_with(THEIRS.client("metaloop"))) as gateway:
        assert why(await gateway.call(client_tls(demanding_hook))) in {"TlsFailed", "ConnectionLost"}


async def test_rotated_client_certificate_is_used_by_the_next_call(demanding_hook: WebServer):
    cluster = cluster_with(THEIRS.client("metaloop"))
    async with running_gateway(cluster) as gateway:
        assert why(await gateway.call(client_tls(demanding_hook))) in {"TlsFailed", "ConnectionLost"}

        pair = OURS.client("metaloop")
        cluster.put(SECRET, tls__crt=pair.public_pem, tls__key=pair.private_pem)

        await gateway.call_until(accepted, client_tls(demanding_hook))


async def test_rotated_authority_is_used_by_the_next_call(hook: WebServer):
    cluster, authority = FakeCluster(), ObjectRef("ConfigMap", "prod", "roots")
    webhook: JsonObject = {"url": hook.url(), "caBundle": {"configMapRef": {"name": "roots", "namespace": "prod"}}}
    cluster.put(authority, ca__crt=OURS.certificate_pem)
    async with running_gateway(cluster) as gateway:
        assert await gateway.call(webhook) == OK

        cluster.put(authority, ca__crt=THEIRS.certificate_pem)

        await gateway.call_until(refused, webhook)
        cluster.put(authority, ca__crt=THEIRS.certificate_pem + OURS.certificate_pem)
        await gateway.call_until(accepted, webhook)


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
def test_unusable_certificates_are_invalid_and_not_quoted(credentials: Credentials):
    with pytest.raises(CredentialsInvalid) as refusal:
        context_for(credentials)

    assert "BEGIN" not in str(refusal.value)


def test_text_around_certificates_is_ignored():
    context = context_for(Credentials(ca_pem=f"# ours\n{OURS.certificate_pem.decode()}\nand theirs\n{THEIRS.certificate_pem.decode()}\n"))

    assert len(context.get_ca_certs()) == 2


def test_comments_between_certificates_may_be_in_any_script():
    """As in the bundles that systems ship, with the name of each authority in a comment."""
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


async def test_invalid_certificates_are_reported_even_for_an_http_url():
    async with serving(answers(200)) as hook, running_gateway() as gateway:
        assert why(await gateway.call({"url": hook.url(), "caBundle": {"inline": "no PEM"}})) == "CredentialsInvalid"
