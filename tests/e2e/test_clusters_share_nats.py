"""Two clusters on one NATS server: with a prefix each, both work; without one, the second is refused."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio

from metaloop.common.objects import unstructured
from metaloop.devkit.stack import Stack, StackOptions
from metaloop.devkit.testbed.cluster import NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .unready import unready

_PARENTS = ("a", "b", "c")
_AT_REST_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Clusters:
    """Two clusters, and the NATS server of the first, which both use."""

    first: Platform
    second: Platform

    @property
    def nats_url(self) -> str:
        return self.first.broker.url


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def clusters(assets: Path) -> AsyncIterator[Clusters]:
    with run_folder() as one, run_folder() as other:
        async with Platform.start(assets, one) as first, Platform.start(assets, other) as second:
            for platform in (first, second):
                await install_parent(platform.cluster, THINGS)
            yield Clusters(first, second)


async def test_second_cluster_without_a_prefix_is_refused_and_nothing_is_created_in_it(clusters: Clusters, tmp_path: Path) -> None:
    async with (
        Webhook.serve() as webhook,
        clusters.first.stack() as stack,
        unready(_options(clusters), tmp_path) as refused,
    ):
        story, other = [await _begun(_lab(platform, stack, webhook), "same") for platform in (clusters.first, clusters.second)]
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
    async with (
        Webhook.serve() as webhook,
        Webhook.serve() as other_webhook,
        clusters.first.stack(settings={"NATS_PREFIX": "first"}) as stack,
        clusters.second.stack(settings={"NATS_PREFIX": "second"}, nats_url=clusters.nats_url) as other_stack,
    ):
        story = await _begun(_lab(clusters.first, stack, webhook), "apart")
        other = await _begun(_lab(clusters.second, other_stack, other_webhook), "apart")

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


def _lab(platform: Platform, stack: Stack, webhook: Webhook) -> Lab:
    return Lab(platform=platform, stack=stack, webhook=webhook)


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
