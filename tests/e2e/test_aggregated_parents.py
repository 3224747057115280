"""Parents that another API server serves, behind the aggregation of the first: they come late, and go away for a while
with their server.
"""

from collections.abc import AsyncIterator

import pytest_asyncio

from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.aggregation import AggregatedApi, guests
from metaloop.devkit.testbed.cluster import EVENTS, ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import Lab, install_parent
from metaloop.devkit.testbed.manifests import parent_resource
from metaloop.devkit.testbed.story import Story

# The API server looks only now and then whether the one behind it is there.
_NOTICED_SECONDS = 60
_NOW_SECONDS = 20
"""Sooner than by looking at discovery, twice a minute."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def api(lab: Lab) -> AsyncIterator[AggregatedApi]:
    """The second API server, for as long as the stories of this file are told."""
    async with AggregatedApi.start(lab.platform) as api:
        yield api


@pytest_asyncio.fixture(loop_scope="session")
async def visit(api: AggregatedApi, story: Story) -> AsyncIterator[Story]:
    """A story whose parents are of a group of their own, which the first API server doesn't know yet."""
    story.parents = guests(story.name)
    await api.install(story.parents)
    yield story
    await api.unregister(story.parents)


async def test_parent_of_an_aggregated_api_is_served_until_its_controller_goes(api: AggregatedApi, visit: Story) -> None:
    await api.register(visit.parents)
    await eventually(lambda: api.is_available(visit.parents))

    await visit.controller()
    await eventually(lambda: visit.normal_event(of=visit.name, reason="Started"))
    await visit.parent("p", text="before")
    await eventually(lambda: visit.settled("p"))
    await visit.change("p", text="after")
    await eventually(lambda: visit.shows("p", text="after"))
    await eventually(lambda: visit.settled("p"))
    await visit.end()
    await eventually(lambda: visit.normal_event(of=visit.name, reason="Stopped"))

    await visit.change("p", text="too late")
    await steadily(lambda: visit.never_shown(text="too late"))


async def test_controller_starts_as_soon_as_the_api_of_its_parents_is_registered(api: AggregatedApi, visit: Story) -> None:
    """No CRD tells of it, and discovery is asked only twice a minute."""
    await visit.controller()
    await eventually(lambda: visit.warning(of=visit.name, containing=visit.parents.group, reason=""))
    await eventually(lambda: visit.ready(status="False", reason="WaitingForCRD"))

    await api.register(visit.parents)

    await eventually(lambda: visit.normal_event(of=visit.name, reason="Started"), within_seconds=_NOW_SECONDS)
    await visit.parent("p")
    await eventually(lambda: visit.settled("p"))
    await eventually(lambda: visit.ready(status="True", reason="Synced"))


async def test_aggregated_api_that_is_away_is_told_once_and_served_again_when_back(api: AggregatedApi, visit: Story) -> None:
    await api.register(visit.parents)
    await visit.controller()
    await eventually(lambda: visit.normal_event(of=visit.name, reason="Started"))
    await visit.parent("p", text="before")
    await eventually(lambda: visit.settled("p"))

    await api.server.kill()
    await eventually(lambda: api.is_available(visit.parents, status="False"), within_seconds=_NOTICED_SECONDS)
    await eventually(lambda: visit.ready(status="False", reason="CannotWatch"))
    await eventually(lambda: _told(visit, times=1))
    await _another_story_goes_on(visit)
    assert len(await visit.config_maps(of="p")) == 3
    await _told(visit, times=1)

    await api.server.start()
    await eventually(lambda: _change(visit, text="after"))
    await eventually(lambda: visit.shows("p", text="after"), within_seconds=_NOW_SECONDS)
    await eventually(lambda: visit.settled("p"), within_seconds=_NOW_SECONDS)
    await eventually(lambda: visit.ready(status="True", reason="Synced"), within_seconds=_NOW_SECONDS)


async def _another_story_goes_on(visit: Story) -> None:
    """A kind that comes while the aggregated API is away is served as ever."""
    other = Story(lab=visit.lab, name=f"{visit.name[:30]}-meanwhile", parents=parent_resource("meanwhiles"))
    await other.begin()
    await other.controller()
    await install_parent(other.cluster, other.parents)
    await other.parent("p")
    await eventually(lambda: other.settled("p"))
    await other.end()


async def _change(visit: Story, *, text: str) -> None:
    try:
        await visit.change("p", text=text)
    except ApiRefused as refusal:
        raise AssertionError(str(refusal)) from refusal


async def _told(visit: Story, *, times: int) -> None:
    """Raise AssertionError unless it was told on the controller so many times that the server isn't there."""
    refusals = [each for each in await visit.cluster.list(EVENTS, "default") if "connection refused" in unstructured.text(each, "message")]
    ours = [each for each in refusals if unstructured.child_object(each, "involvedObject")["name"] == visit.name]
    expect(len(ours) == times, f"told was {[each['message'] for each in ours]}")
