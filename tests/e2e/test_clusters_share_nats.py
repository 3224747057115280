"""Two clusters on one NATS server: with a prefix each, both work; without one, the second is refused."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest_asyncio

from metaloop.common.objects import unstructured
from metaloop.devkit.stack import StackOptions
from metaloop.devkit.testbed.cluster import NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .apart import Apart, folder_apart
from .unready import unready

_PARENTS = ("a", "b", "c")
_AT_REST_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two clusters, and the NATS server of the first, which both use."""

    first: Platform
    second: Platform

    @property
    def nats_url(self) -> str:
        return self.first.broker.url


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(assets: Path, lab: Lab) -> AsyncIterator[Clusters]:
    with run_folder() as folder:
        async with Platform.start(assets, folder) as second:
            await install_parent(second.cluster, THINGS)
            yield Clusters(lab.platform, second)


async def test_second_cluster_without_a_prefix_is_refused_and_nothing_is_created_in_it(
    clusters: Clusters, lab: Lab, tmp_path: Path
) -> None:
    async with unready(_options(clusters), tmp_path) as refused:
        story, other = [await _begun(replace(lab, platform=platform), "same") for platform in (clusters.first, clusters.second)]
        uids = [await _uid(platform.cluster) for platform in (clusters.first, clusters.second)]

        reasons = [
            await eventually(lambda url=url: refused.reason(url, "job stream")) for url in (refused.watcher_url, refused.reconciler_url)
        ]

        for reason in reasons:
            assert all(word in reason for word in (*uids, "METALOOP_NATS_PREFIX"))
        await eventually(lambda: _converged(story, "one"))
        for parent in _PARENTS:
            await story.change(parent, text="changed")
        await eventually(lambda: _converged(story, "changed"))
        await asyncio.sleep(_AT_REST_SECONDS)
        assert await other.config_maps() == {}
        assert {unstructured.uid(call.parent) for call in story.calls()} == {unstructured.uid(each) for each in await story.all_parents()}
        assert [refused.lines(service, "bus.stream_refused") for service in ("watcher", "reconciler")] == [1, 1]
        await story.end()
        await other.end()


async def test_clusters_with_a_prefix_each_work_side_by_side(clusters: Clusters) -> None:
    first, second = Apart("first"), Apart("second")
    async with (
        folder_apart(clusters.first) as own,
        Webhook.serve() as webhook,
        Webhook.serve() as other_webhook,
        own.stack(settings=first.settings(), reconcilers=1) as stack,
        clusters.second.stack(settings=second.settings(), nats_url=clusters.nats_url, reconcilers=1) as other_stack,
    ):
        story = await _begun(Lab(platform=own, stack=stack, webhook=webhook, labels=first.labels), "apart")
        other_lab = Lab(platform=clusters.second, stack=other_stack, webhook=other_webhook, labels=second.labels)
        other = await _begun(other_lab, "apart")

        for each in (story, other):
            await eventually(lambda each=each: _converged(each, "one"))
        await other.change("a", text="changed")

        await eventually(lambda: other.shows("a", text="changed"))
        assert (await story.texts(of="a")).popitem()[1] == "one"
        assert (webhook.overlaps, other_webhook.overlaps) == ([], [])
        await story.end()
        await other.end()


def _options(clusters: Clusters) -> StackOptions:
    """The second cluster's services on the first one's server, with the same names."""
    return StackOptions(kubeconfig=clusters.second.plane.kubeconfig_path, nats_url=clusters.nats_url, reconcilers=1)


async def _begun(lab: Lab, name: str) -> Story:
    """A story with a controller and parents, whose names are the same in every cluster."""
    story = Story(lab=lab, name=name)
    await story.begin()
    await story.controller()
    for parent in _PARENTS:
        await story.parent(parent, text="one")
    return story


async def _converged(story: Story, text: str) -> None:
    for parent in _PARENTS:
        await story.shows(parent, text=text)
        await story.settled(parent)


async def _uid(cluster: Cluster) -> str:
    return unstructured.uid(await cluster.get(NAMESPACES, "", "kube-system"))
