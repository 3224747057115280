"""Secrets stay secret: a webhook echoes all that it is sent in confidence, and nothing of that is found in any place
where people look.
"""

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import COMPOSITES, EVENTS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.jaeger import Jaeger
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Behaviour, Reply, Webhook

from .apart import Apart, folder_apart

pytestmark = pytest.mark.timeout(900)  # the first time on a machine, Jaeger is built

SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
TOKEN, PASSWORD, QUERY = "t0ken/+planted==", "p&ss<w0rd>planted", "query-planted"
PLANTED = (TOKEN, PASSWORD, QUERY, b64encode(f"user:{PASSWORD}".encode()).decode())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def watched(platform: Platform, jaeger: Jaeger) -> AsyncIterator[Story]:
    """A story whose services say all that they ever say."""
    apart = Apart("confidential")
    settings = apart.settings(OTLP_ENDPOINT=jaeger.otlp_endpoint, LOG_LEVEL="debug")
    async with folder_apart(platform) as own, Webhook.serve() as webhook, own.stack(settings=settings, reconcilers=1) as stack:
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await story.begin()
        yield story
        await story.end()


async def test_what_is_sent_in_confidence_is_found_nowhere(watched: Story, jaeger: Jaeger) -> None:
    story = watched
    await story.cluster.create(SECRETS, _secret(story.name), namespace=story.name)
    url = f"{story.lab.webhook.url(story.name)}?key={QUERY}"
    reference: JsonObject = {"name": "hook", "namespace": story.name}
    await story.controller(_echoing(story, 500), hooks=_hook(url, authorization={"secretRef": {**reference, "key": "token"}}))

    for status in (500, 429):
        story.now_answers(_echoing(story, status))
        await story.edit(hooks=_hook(url, authorization={"secretRef": {**reference, "key": "token"}}))
        await _has_been_asked(story, f"token-{status}")
        await story.edit(hooks=_hook(url, basicAuth={"secretRef": reference}))
        await _has_been_asked(story, f"password-{status}")
    story.now_answers(_echoing(story, 503))
    await eventually(lambda: _is_logged(story, "CircuitOpen"))
    await story.edit(hooks=_hook(url.replace("http://", f"http://user:{PASSWORD}@")))
    await eventually(lambda: story.warning(of="token-500", containing="user name or password"))

    assert {secret for secret in PLANTED if secret in str([call.headers for call in story.calls()])} == {*PLANTED} - {PASSWORD, QUERY}
    places = await eventually(lambda: _places(story, jaeger), within_seconds=30)
    assert [(place, secret) for place, text in places.items() for secret in PLANTED if secret in text] == []


def _secret(namespace: str) -> JsonObject:
    values = {"token": TOKEN, "username": "user", "password": PASSWORD}
    data: JsonObject = {key: b64encode(value.encode()).decode() for key, value in values.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hook", "namespace": namespace}, "data": data}


def _hook(url: str, **credentials: JsonObject) -> JsonObject:
    return {"sync": {"webhook": {"url": url, "timeout": "2s", **credentials}}}


def _echoing(story: Story, status: int) -> Behaviour:
    """Answers with what it was sent, as debug pages do."""

    def echo(_: JsonObject) -> Reply:
        headers: JsonObject = {str(name): value for name, value in story.calls()[-1].headers.items()}
        kind, value = str(headers["Authorization"]).split(" ")
        user = b64decode(value).decode() if kind == "Basic" else ""
        return Reply(body=dumps({"url": f"?key={QUERY}", "user": user, "headers": headers}), status=status)

    return echo


async def _has_been_asked(story: Story, parent: str) -> None:
    await story.parent(parent)
    await eventually(lambda: story.called(1, parent=parent))


async def _is_logged(story: Story, word: str) -> None:
    expect(word in story.lab.stack.reconcilers[0].log.read_text(), f"{word} is in no log yet")


async def _places(story: Story, jaeger: Jaeger) -> Mapping[str, str]:
    """What is to be seen in each place, once there is something of our story in it."""
    platform, services = story.lab.platform, story.lab.stack.services
    logs = {f"log of {service.name}": service.log.read_text() for service in services}
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        metrics = {f"metrics of {service.name}": (await client.get(service.metrics_url)).text for service in services}
    objects = {
        "events": str(await story.cluster.list(EVENTS)),
        "controllers": str([found.get("status") for found in await story.cluster.list(COMPOSITES)]),
        "parents": str(await story.all_parents()),
    }
    stored = {"job stream": _content_of(platform.broker.store)}
    places = {**logs, **metrics, **objects, **stored, "traces": await jaeger.everything()}
    for place in ("log of hookgateway", "log of reconciler-0", "events", "traces"):
        expect("webhook answered 500" in places[place], f"nothing is to be seen yet in {place}")
    return places


def _content_of(folder: Path) -> str:
    """What is in the files of a folder whose owner makes and removes some meanwhile."""
    contents: list[str] = []
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            contents.append(path.read_text(errors="replace"))
    return "".join(contents)
