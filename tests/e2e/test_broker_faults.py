"""The broker dies, loses all that it holds, is out of reach or slow: no parent is lost for it, and work goes on as soon
as it is back.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
import yaml

from metaloop.devkit.broker import Broker
from metaloop.devkit.stack import Service
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import Lab, Platform
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.tcpproxy import TcpProxy
from metaloop.devkit.testbed.webhook import Webhook

from .apart import Apart, folder_apart
from .many_parents import ManyParents

_PARTITION_SECONDS = 15.0
"""Longer than leases live, than anybody waits for an answer, and than the longest pause between two tries."""
_BACK_SECONDS = 25.0
"""How soon after its return the first parent is served again."""
_READY_SECONDS = 20.0
_SETTLED_SECONDS = 30.0
_BASE = Path(__file__).parents[2] / "deploy/kustomize/base"
_MORE_BYTES = 30 * 1024 * 1024
"""How much a watcher may grow while it can't hand out anything."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Parents whose services reach the broker through a proxy."""

    lab: Lab
    parents: ManyParents
    proxy: TcpProxy


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def broken(platform: Platform) -> AsyncIterator[Broken]:
    """Parents that have settled, with a broker of their own; no hook was ever called twice at once for one parent."""
    apart = Apart("broken")
    async with (
        folder_apart(platform) as own,
        Broker.start(own.workdir) as broker,
        TcpProxy.before(broker.url) as proxy,
        Webhook.serve() as webhook,
        own.stack(nats_url=proxy.instead_of(broker.url), settings=apart.settings()) as stack,
    ):
        lab = Lab(platform=replace(own, broker=broker), stack=stack, webhook=webhook, labels=apart.labels)
        story = Story(lab=lab, name=apart.name)
        await story.begin()
        await story.controller()
        parents = ManyParents(story)
        await parents.create()
        yield Broken(lab, parents, proxy)
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
        await eventually(lambda: _is_ready(watcher.url, expected=False), within_seconds=_READY_SECONDS)
        assert watcher.rss_bytes() < before + _MORE_BYTES
    finally:
        broken.proxy.heal()

    await eventually(lambda: broken.parents.any_shows(f"round {rounds}"), within_seconds=_BACK_SECONDS)
    await eventually(lambda: broken.parents.all_show(f"round {rounds}"), within_seconds=_SETTLED_SECONDS)
    await eventually(lambda: _is_ready(watcher.url, expected=True), within_seconds=_READY_SECONDS)


@pytest.mark.parametrize("delay_seconds", [0.2])
async def test_a_slow_broker_makes_all_slower_and_nothing_wrong(broken: Broken, delay_seconds: float) -> None:
    broken.proxy.delay_seconds = delay_seconds
    try:
        await broken.parents.change("changed slowly")

        await eventually(lambda: broken.parents.all_show("changed slowly"), within_seconds=2 * _SETTLED_SECONDS)
    finally:
        broken.proxy.delay_seconds = 0.0


@pytest.mark.chaos  # it waits for longer than a minute
@pytest.mark.timeout(180)
async def test_services_outlive_an_outage_that_is_longer_than_their_liveness_threshold(broken: Broken) -> None:
    """A kubelet that restarted them would have the whole cluster listed again; CrashLoopBackOff would add minutes."""
    services = broken.lab.stack.services
    dependent = [each for each in services if each.name != "hookgateway"]
    pids = [each.pid for each in services]
    broken.proxy.partition()
    try:
        await eventually(lambda: _all_ready(dependent, expected=False), within_seconds=30)
        await steadily(lambda: _all_alive(services), for_seconds=_liveness_threshold_seconds())
        await _all_ready(dependent, expected=False)
    finally:
        broken.proxy.heal()

    await eventually(lambda: _all_ready(services, expected=True), within_seconds=30)
    assert [each.pid for each in services] == pids


def _liveness_threshold_seconds() -> float:
    """After how long a kubelet restarts the most impatient of our services, with a try to spare."""
    thresholds = [
        (probe["failureThreshold"] + 1) * probe["periodSeconds"]
        for name in ("watcher", "reconciler", "hookgateway")
        for manifest in yaml.safe_load_all((_BASE / f"{name}.yaml").read_text())
        if manifest["kind"] == "Deployment"
        for probe in [manifest["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]]
    ]
    assert len(thresholds) == 3
    return max(thresholds)


async def _all_alive(services: Sequence[Service]) -> None:
    for service in services:
        answer = await _get(f"{service.url}/healthz")
        if not answer.is_success:
            pytest.fail(f"{service.name}: /healthz answers {answer.status_code}: {answer.text}")


async def _all_ready(services: Sequence[Service], *, expected: bool) -> None:
    for service in services:
        await _is_ready(service.url, expected=expected)


async def _is_ready(url: str, *, expected: bool) -> None:
    answer = await _get(f"{url}/readyz")
    expect(answer.is_success is expected, f"/readyz answers {answer.status_code}: {answer.text}")


async def _get(url: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(url, timeout=_READY_SECONDS)
