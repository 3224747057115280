"""The broker dies, loses all that it holds, is out of reach or slow: no parent is lost for it, and work goes on as soon
as it is back.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.tcpproxy import TcpProxy
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .many_parents import ManyParents

_PARTITION_SECONDS = 15.0
"""Longer than leases live, than anybody waits for an answer, and than the longest pause between two tries."""
_BACK_SECONDS = 2.0
"""How soon after its return the first parent is served again."""
_SETTLED_SECONDS = 15.0
_MORE_BYTES = 30 * 1024 * 1024
"""How much a watcher may grow while it can't hand out anything."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Parents whose services reach the broker through a proxy."""

    lab: Lab
    parents: ManyParents
    proxy: TcpProxy


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def broken(assets: Path) -> AsyncIterator[Broken]:
    """Parents that have settled, in a cluster of their own; no hook was ever called twice at once for one parent."""
    with run_folder() as folder:
        async with (
            Platform.start(assets, folder) as platform,
            TcpProxy.before(platform.broker.url) as proxy,
            Webhook.serve() as webhook,
            platform.stack(nats_url=proxy.instead_of(platform.broker.url)) as stack,
        ):
            await install_parent(platform.cluster, THINGS)
            story = Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name="broken")
            await story.begin()
            await story.controller()
            parents = ManyParents(story)
            await parents.create()
            yield Broken(story.lab, parents, proxy)
            await story.end()
            assert webhook.overlaps == []


async def test_changes_while_the_broker_is_down_are_served_as_soon_as_it_is_back(broken: Broken) -> None:
    broker = broken.lab.platform.broker
    await broker.kill()
    await broken.parents.change("changed while it was down")
    await asyncio.sleep(3)

    await broker.restart()

    await eventually(lambda: broken.parents.any_shows("changed while it was down"), within_seconds=_BACK_SECONDS)
    await eventually(lambda: broken.parents.all_show("changed while it was down"), within_seconds=_SETTLED_SECONDS)


async def test_a_broker_that_lost_its_store_is_filled_again(broken: Broken) -> None:
    broker = broken.lab.platform.broker
    changing = asyncio.create_task(broken.parents.change("changed before it was wiped"))

    await broker.wipe()

    await changing
    await eventually(lambda: broken.parents.all_show("changed before it was wiped"), within_seconds=_SETTLED_SECONDS)


async def test_partition_loses_nothing_costs_no_memory_and_is_over_at_once(broken: Broken) -> None:
    watcher = broken.lab.stack.watcher
    before = watcher.rss_bytes()
    began = time.monotonic()
    broken.proxy.partition()
    try:
        rounds = 0
        while time.monotonic() - began < _PARTITION_SECONDS:
            rounds += 1
            await broken.parents.change(f"round {rounds}")
            await asyncio.sleep(1)
        await eventually(lambda: _is_alive(watcher.url, expected=False), within_seconds=5)
        assert watcher.rss_bytes() < before + _MORE_BYTES
    finally:
        broken.proxy.heal()

    await eventually(lambda: broken.parents.any_shows(f"round {rounds}"), within_seconds=_BACK_SECONDS)
    await eventually(lambda: broken.parents.all_show(f"round {rounds}"), within_seconds=_SETTLED_SECONDS)
    await eventually(lambda: _is_alive(watcher.url, expected=True), within_seconds=5)


@pytest.mark.parametrize("delay_seconds", [0.2])
async def test_a_slow_broker_makes_all_slower_and_nothing_wrong(broken: Broken, delay_seconds: float) -> None:
    broken.proxy.delay_seconds = delay_seconds
    try:
        await broken.parents.change("changed slowly")

        await eventually(lambda: broken.parents.all_show("changed slowly"), within_seconds=2 * _SETTLED_SECONDS)
    finally:
        broken.proxy.delay_seconds = 0.0


async def _is_alive(url: str, *, expected: bool) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"{url}/healthz", timeout=5)
    expect(answer.is_success is expected, f"/healthz answers {answer.status_code}: {answer.text}")
