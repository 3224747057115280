"""Watches that are half a second late: no hook is shown a view from before our own last writes, and nothing is done
twice for it.
"""

from collections import Counter
from collections.abc import AsyncIterator

import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.audit import tally
from metaloop.devkit.testbed.eventually import eventually, steadily
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

_LATE_SECONDS = 0.5


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def late(platform: Platform) -> AsyncIterator[Story]:
    """A story whose services have watches that are late, and in which a first parent has settled."""
    apart = Apart("slow-watches")
    async with (
        folder_apart(platform) as own,
        ApiProxy.before(own.plane, own.workdir) as proxy,
        Webhook.serve() as webhook,
        own.stack(kubeconfig=proxy.kubeconfig_path, settings=apart.settings()) as stack,
    ):
        proxy.watch_delay_seconds = _LATE_SECONDS
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await story.begin()
        await story.controller()
        await story.parent("before")
        await eventually(lambda: story.rested("before"))
        yield story
        await story.end()
        assert webhook.overlaps == []


async def test_slow_watches_cost_no_write_and_no_call_more(late: Story) -> None:
    mark = late.lab.audit.mark()

    await late.parent("p", text="new")

    await eventually(lambda: late.rested("p"))
    await steadily(late.no_more_than(3, parent="p"), for_seconds=4 * _LATE_SECONDS)
    requests = [request for request in await late.lab.audit.ours_since(mark) if request.namespace == late.name]
    assert tally([request for request in requests if request.is_write]) == Counter({"create configmaps": 3, "update things/status": 2})
    assert [_shown(call.request) for call in late.calls(parent="p")] == [(0, None), (3, 0), (3, 3)]


async def test_a_change_is_not_undone_by_what_was_seen_late(late: Story) -> None:
    await late.parent("q", text="first")
    await eventually(lambda: late.rested("q"))
    calls = len(late.calls(parent="q"))

    await late.change("q", text="second")

    await eventually(lambda: late.shows("q", text="second"))
    await steadily(late.no_more_than(calls + 3, parent="q"), for_seconds=4 * _LATE_SECONDS)
    shown = [_texts(call.request) for call in late.calls(parent="q")[calls:]]
    assert shown == sorted(shown, key=lambda texts: "second" in texts)
    assert all(len(texts) == 1 for texts in shown)


def _shown(request: JsonObject) -> tuple[int, object]:
    """How many children the hook was shown, and how many the status that it was shown counts."""
    children = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
    status = unstructured.child_object(unstructured.child_object(request, "parent"), "status")
    return len(children), status.get("children")


def _texts(request: JsonObject) -> set[str]:
    """The texts of the children that the hook was shown."""
    children = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
    return {unstructured.text(unstructured.child_object(child, "data"), "text") for child in children.values() if isinstance(child, dict)}
