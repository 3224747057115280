"""A webhook behind mutual TLS and a token: what is missing is told and heals by itself, and all of it may be rotated
while controllers run.
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.certs import Authority, KeyPair
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.testbed.account import Account, rule
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.manifests import GROUP
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Call, Webhook

from .apart import Apart, folder_apart

SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
TOKEN, IDENTITY, ROOTS = "hook-token", "hook-identity", "hook-roots"

# All that the services need, were it not for the Secrets of webhooks.
_ALLOWED = (
    rule("metacontroller.k8s.io", ["*"]),
    rule("metaloop.dev", ["*"]),
    rule("apiextensions.k8s.io", ["customresourcedefinitions"], verbs=["get", "list", "watch"]),
    rule(GROUP, ["*"]),
    rule("", ["configmaps"]),
    rule("", ["events"], verbs=["create", "patch"]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A webhook that wants to see a certificate and a token, and services that may not read Secrets."""

    story: Story
    account: Account
    tls: ssl.SSLContext
    ours: Authority

    @property
    def webhook(self) -> Webhook:
        """The webhook."""
        return self.story.lab.webhook

    def spec(self) -> JsonObject:
        """How the controller says where the hook is and what it takes to call it."""
        place: JsonObject = {"namespace": self.story.name}
        webhook: JsonObject = {
            "url": self.webhook.url(self.story.name),
            "timeout": "5s",
            "caBundle": {"configMapRef": {**place, "name": ROOTS}},
            "clientTLS": {"secretRef": {**place, "name": IDENTITY}},
            "authorization": {"secretRef": {**place, "name": TOKEN, "key": "token"}},
        }
        return {"sync": {"webhook": webhook}}

    async def put_secret(self, name: str, **values: bytes) -> None:
        """The Secret holds these values, whether it was there or not."""
        data: JsonObject = {key.replace("__", "."): b64encode(value).decode() for key, value in values.items()}
        await self._put(SECRETS, name, {"data": data})

    async def put_identity(self, pair: KeyPair) -> None:
        """The Secret with our certificate holds this one."""
        await self.put_secret(IDENTITY, tls__crt=pair.public_pem, tls__key=pair.private_pem)

    async def put_roots(self, *authorities: Authority) -> None:
        """The ConfigMap names these authorities."""
        await self._put(CONFIG_MAPS, ROOTS, {"data": {"ca.crt": b"".join(each.certificate_pem for each in authorities).decode()}})

    async def _put(self, resource: ResourceInfo, name: str, content: Mapping[str, JsonObject]) -> None:
        obj: JsonObject = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": name}, **content}
        namespace, cluster = self.story.name, self.story.cluster
        if await cluster.find(resource, namespace, name):
            await cluster.replace(resource, obj, namespace=namespace, name=name)
        else:
            await cluster.create(resource, obj, namespace=namespace)

    def last_call(self) -> Call:
        """The latest call of the hook."""
        return self.story.calls()[-1]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def site(platform: Platform) -> AsyncIterator[Site]:
    """The site, with services that have no more permissions than they need."""
    ours, apart = Authority("ours"), Apart("credentials")
    async with folder_apart(platform) as own:
        tls = _demanding(ours, own.workdir)
        account = await Account.create(own.plane, own.cluster, namespace="default", name=apart.name, folder=own.workdir)
        await account.allow(*_ALLOWED)
        async with (
            Webhook.serve(tls=tls) as webhook,
            own.stack(kubeconfig=account.kubeconfig_path, settings=apart.settings()) as stack,
        ):
            story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
            await story.begin()
            yield Site(story=story, account=account, tls=tls, ours=ours)
            await story.end()
        assert webhook.overlaps == []


def _demanding(authority: Authority, folder: Path) -> ssl.SSLContext:
    """A server's side that shows a certificate of an authority and wants to see one of it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=authority.certificate_pem.decode())
    _show(context, authority.serving("hook", hosts=[LOOPBACK]), folder / "hook-1")
    return context


def _show(context: ssl.SSLContext, pair: KeyPair, stem: Path) -> None:
    pair.write(stem)
    context.load_cert_chain(stem.with_suffix(".crt"), stem.with_suffix(".key"))


async def test_what_is_missing_is_told_on_the_parent_and_heals_by_itself(site: Site) -> None:
    story = site.story
    site.webhook.tokens = frozenset({"first"})
    await site.put_roots(site.ours)
    await story.controller(hooks=site.spec())
    await story.parent("p")

    told = await eventually(lambda: story.warning(of="p", containing=f"Secret {story.name}/{IDENTITY} can't be read"))
    assert "the gateway lacks the permission to list and watch it" in str(told["message"])
    assert 'cannot list resource "secrets"' in str(told["message"])

    await site.account.allow(rule("", ["secrets"], verbs=["list", "watch"], names=[IDENTITY, TOKEN]), namespace=story.name, role="hook")
    await eventually(lambda: story.warning(of="p", containing=f"Secret {story.name}/{TOKEN} does not exist"), within_seconds=40)

    await site.put_secret(TOKEN, token=b"first")
    await eventually(lambda: story.warning(of="p", containing=f"Secret {story.name}/{IDENTITY} does not exist"), within_seconds=40)

    await site.put_identity(site.ours.client("first"))
    await eventually(lambda: story.settled("p"), within_seconds=40)
    assert site.last_call().client == "first"


async def test_a_rotated_token_is_used_by_the_next_call_and_no_call_is_refused(site: Site) -> None:
    """The webhook knows the old and the new token for a while, as anybody does who rotates one."""
    async with _changing(site.story, "rotates-token"):
        site.webhook.tokens, turned_away = frozenset({"first", "second"}), site.webhook.turned_away
        await site.put_secret(TOKEN, token=b"second")
        await eventually(lambda: _last_call_has(site, token="second"))
        site.webhook.tokens = frozenset({"second"})
        await _calls_go_on(site.story)

    assert site.webhook.turned_away == turned_away
    await _nothing_failed(site.story, "rotates-token")


async def test_a_rotated_client_certificate_is_shown_with_the_next_call(site: Site) -> None:
    async with _changing(site.story, "rotates-identity"):
        await site.put_identity(site.ours.client("second"))
        await eventually(lambda: _last_call_has(site, client="second"))
        await _calls_go_on(site.story)

    await _nothing_failed(site.story, "rotates-identity")


async def test_an_authority_is_rotated_and_no_call_fails(site: Site, tmp_path: Path) -> None:
    theirs = Authority("theirs")
    async with _changing(site.story, "rotates-authority"):
        ports = _ports_so_far(site)
        await site.put_roots(site.ours, theirs)
        await eventually(lambda: _last_call_has(site, port_not_among=ports))
        _show(site.tls, theirs.serving("hook", hosts=[LOOPBACK]), tmp_path / "hook-2")
        ports = _ports_so_far(site)
        await site.put_roots(theirs)
        await eventually(lambda: _last_call_has(site, port_not_among=ports))
        await _calls_go_on(site.story)

    await _nothing_failed(site.story, "rotates-authority")


async def test_a_token_that_is_taken_back_is_used_no_more(site: Site) -> None:
    story = site.story
    await story.parent("asking")
    await story.cluster.delete(SECRETS, story.name, TOKEN)
    # The gateway learns of it a moment later.
    await eventually(lambda: _is_refused(story, "asking"))

    await story.parent("orphaned")
    await eventually(lambda: story.warning(of="orphaned", containing=f"Secret {story.name}/{TOKEN} does not exist"))

    assert story.calls(parent="orphaned") == []
    await site.put_secret(TOKEN, token=b"second")
    await eventually(lambda: story.settled("orphaned"), within_seconds=40)


async def _is_refused(story: Story, parent: str) -> None:
    """Have the hook asked about a parent once more; raise AssertionError until that is refused for lack of a token."""
    await story.change(parent, text=str(uuid4()))
    await story.warning(of=parent, containing=f"Secret {story.name}/{TOKEN} does not exist")


@asynccontextmanager
async def _changing(story: Story, parent: str) -> AsyncIterator[None]:
    """A block during which a parent is changed all the time; after it, the parent shows the last change."""
    await story.parent(parent, text="first")
    await eventually(lambda: story.settled(parent))
    async with asyncio.TaskGroup() as tasks:
        changing = tasks.create_task(_keep_changing(story, parent))
        yield
        changing.cancel()
    await story.change(parent, text="last")
    await eventually(lambda: story.shows(parent, text="last"))


async def _keep_changing(story: Story, parent: str) -> None:
    for number in count():
        await story.change(parent, text=str(number))
        await asyncio.sleep(0.02)  # the pace of the changes


def _ports_so_far(site: Site) -> frozenset[int]:
    """The ports of all connections on which the hook was called."""
    return frozenset(call.port for call in site.story.calls())


async def _last_call_has(site: Site, *, token: str = "", client: str = "", port_not_among: frozenset[int] = frozenset()) -> None:
    call = site.last_call()
    expect(not token or call.headers["Authorization"] == f"Bearer {token}", "the old token is still used")
    expect(not client or call.client == client, f"the certificate of {call.client} is still used")
    expect(call.port not in port_not_among, "an old connection is still used")


async def _calls_go_on(story: Story) -> None:
    calls = len(story.calls())
    await eventually(lambda: story.called(calls + 20))


async def _nothing_failed(story: Story, parent: str) -> None:
    """Raises AssertionError if a sync of the parent ended with a Warning."""
    try:
        told = await story.warning(of=parent)
    except AssertionError:
        return
    raise AssertionError(f"{parent} was told: {told['message']}")
