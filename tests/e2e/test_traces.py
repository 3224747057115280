"""One change in one trace, as a real Jaeger shows it: from the watcher's event through reconciler and hook gateway to
the webhook.
"""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio

from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.jaeger import Jaeger, Span
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart

pytestmark = pytest.mark.timeout(900)  # the first time on a machine, Jaeger is built


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def traced(platform: Platform, jaeger: Jaeger) -> AsyncIterator[Story]:
    """A story whose services send their spans to Jaeger."""
    apart = Apart("traced")
    settings = apart.settings(OTLP_ENDPOINT=jaeger.otlp_endpoint)
    async with folder_apart(platform) as own, Webhook.serve() as webhook, own.stack(settings=settings, reconcilers=1) as stack:
        story = Story(lab=Lab(platform=own, stack=stack, webhook=webhook, labels=apart.labels), name=apart.name)
        await story.begin()
        await story.controller()
        yield story
        await story.end()


async def test_a_change_is_one_trace_from_the_event_to_the_webhook(traced: Story, jaeger: Jaeger) -> None:
    await traced.parent("p")
    await eventually(lambda: traced.settled("p"))

    call = traced.calls(parent="p")[0]
    _, trace_id, span_id, _ = call.headers["traceparent"].split("-")
    spans = await eventually(lambda: _arrived(jaeger, trace_id))

    mark, job, sync, called, hook = (_named(spans, *each) for each in PATH)
    assert [each.parent_id for each in (mark, job, sync, called, hook)] == ["", mark.id, job.id, sync.id, called.id]
    assert hook.id == span_id, "the webhook goes on from the gateway's span"
    assert mark.attributes["key"] == job.attributes["key"] == "CompositeController/traced things traced/p"
    assert (job.attributes["outcome"], hook.attributes["verdict"]) == ("done", "Accepted")
    assert hook.attributes["endpoint"] == traced.lab.webhook.url("traced")
    assert [event for event in hook.events if not event.startswith("dns")] == ["connect_start", "connect_done", "first_byte", "body_done"]


PATH = (
    ("metaloop-watcher", "mark"),
    ("metaloop-reconciler", "job"),
    ("metaloop-reconciler", "sync"),
    ("metaloop-reconciler", "call hook"),
    ("metaloop-hookgateway", "hook sync"),
)
"""The spans of a change, from the first to the last, each below the one before."""


async def _arrived(jaeger: Jaeger, trace_id: str) -> list[Span]:
    """The spans of a trace once each service has sent its own."""
    spans = await jaeger.trace(trace_id)
    arrived = {(span.service, span.name) for span in spans}
    expect(arrived.issuperset(PATH), f"only {arrived} have arrived")
    return spans


def _named(spans: Sequence[Span], service: str, name: str) -> Span:
    """The first span of that name."""
    return next(span for span in spans if (span.service, span.name) == (service, name))
