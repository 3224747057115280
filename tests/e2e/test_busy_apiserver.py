"""An API server that takes only so much at once, and turns the rest away with 429: it sets the pace, everything
converges, and nobody is blamed for it.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import EVENTS
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

PARENTS, CHILDREN = 40, 10
_AT_ONCE, _BUSY_SECONDS = 6, 0.02
_MOST_TURNED_AWAY = 0.25
"""Of all requests: a client that took no notice would be turned away nine times out of ten."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy(platform: Platform) -> AsyncIterator[tuple[Story, ApiProxy]]:
    """A story, and the proxy between its services and the API server."""
    apart = Apart("busy")
    async with (
        folder_apart(platform) as own,
        ApiProxy.before(own.plane, own.workdir) as proxy,
        Webhook.serve() as webhook,
        own.stack(kubeconfig=proxy.kubeconfig_path, settings=apart.settings()) as stack,
    ):
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await story.begin()
        await story.controller()
        await story.parent("before")
        await eventually(lambda: story.settled("before"))
        yield story, proxy
        await story.end()
        assert webhook.overlaps == []


async def test_pace_falls_to_what_the_api_server_takes_and_everything_converges(busy: tuple[Story, ApiProxy]) -> None:
    story, proxy = busy
    proxy.most_at_once, proxy.busy_seconds = _AT_ONCE, _BUSY_SECONDS
    asked = len(proxy.asked)

    async with asyncio.TaskGroup() as tasks:
        for index in range(PARENTS):
            tasks.create_task(story.parent(f"p{index}", count=CHILDREN))

    for index in range(PARENTS):
        await eventually(lambda index=index: story.settled(f"p{index}", children=CHILDREN), within_seconds=90)
    proxy.most_at_once = 0
    assert 0 < proxy.turned_away < _MOST_TURNED_AWAY * (len(proxy.asked) - asked)
    warnings = [event for event in await story.cluster.list(EVENTS, story.name) if event.get("type") == "Warning"]
    assert warnings == []


async def test_api_server_that_takes_nothing_for_a_while_delays_and_loses_nothing(busy: tuple[Story, ApiProxy]) -> None:
    story, proxy = busy
    proxy.refusals["/things"] = proxy.refusals["/configmaps"] = 429

    await story.parent("late", text="in time")
    await eventually(lambda: story.called(1, parent="late"))
    await asyncio.sleep(3)
    proxy.refusals.clear()

    await eventually(lambda: story.shows("late", text="in time"), within_seconds=30)
    await eventually(lambda: story.settled("late"))
