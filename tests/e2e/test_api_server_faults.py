"""The API server stands still, dies or turns everybody away: nothing is lost, nothing is done twice, and nobody is asked in a hot loop meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.cluster import Cluster
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Ground, Lab, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .crowds import PARENTS, Crowd

_FROZEN_SECONDS = 30.0
_REFUSED_SECONDS = 10.0
_MOST_REQUESTS_A_SECOND = 30.0
"""Of all services together, while none is answered: watches, leases, retries."""
_MOST_TRIES = 12
"""Of one parent within the ten seconds: its backoff begins at 5 ms and doubles."""
_MOST_REQUESTS_A_TRY = 2 * 4
"""Three children and a status, each sent a second time after a 401, with the credentials read anew."""
_SETTLED_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Remote:
    """A crowd whose services reach the API server through a proxy; what is asked of the cluster's users goes straight there."""

    lab: Lab
    crowd: Crowd
    proxy: ApiProxy


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remote(assets: Path) -> AsyncIterator[Remote]:
    """A crowd in a cluster of its own, which has settled; no hook was ever asked about one parent twice at once."""
    with run_folder() as folder:
        async with Ground.start(assets, folder) as ground, ApiProxy.before(ground.plane, folder) as proxy, Webhook.serve() as webhook:
            await install_parent(ground.cluster, THINGS)
            settings = {"WATCH_INACTIVITY_SECONDS": "10"}
            async with ground.stack(kubeconfig=proxy.kubeconfig_path, settings=settings) as stack:
                story = Story(lab=Lab(ground=ground, stack=stack, webhook=webhook), name="remote")
                await story.begin()
                await story.controller()
                crowd = Crowd(story)
                await crowd.appear()
                yield Remote(story.lab, crowd, proxy)
                await story.end()
            assert webhook.overlaps == []


async def test_what_changed_while_the_api_server_stood_still_is_served_when_it_goes_on(remote: Remote) -> None:
    remote.proxy.freeze()
    asked = len(remote.proxy.asked)
    await remote.crowd.change("changed behind the ice")
    await asyncio.sleep(_FROZEN_SECONDS)
    asked = len(remote.proxy.asked) - asked

    remote.proxy.thaw()

    await eventually(lambda: remote.crowd.all_show("changed behind the ice"), within_seconds=_SETTLED_SECONDS)
    assert asked < _MOST_REQUESTS_A_SECOND * _FROZEN_SECONDS


@pytest.mark.parametrize("code", [401, 429, 503])
async def test_everybody_is_turned_away_for_a_while(remote: Remote, code: int) -> None:
    remote.proxy.refusals["/"] = code
    asked = len(remote.proxy.asked)
    await remote.crowd.change(f"changed during {code}")
    await asyncio.sleep(_REFUSED_SECONDS)
    asked = len(remote.proxy.asked) - asked

    remote.proxy.refusals.clear()

    await eventually(lambda: remote.crowd.all_show(f"changed during {code}"), within_seconds=_SETTLED_SECONDS)
    assert asked < PARENTS * _MOST_TRIES * _MOST_REQUESTS_A_TRY + _MOST_REQUESTS_A_SECOND * _REFUSED_SECONDS


async def test_the_api_server_is_killed_in_the_middle_of_the_work(remote: Remote) -> None:
    plane = remote.lab.ground.plane
    await remote.crowd.change("changed just before")

    await plane.apiserver.kill()
    await plane.apiserver.start()

    async with Cluster.connect(plane):
        await eventually(lambda: remote.crowd.all_show("changed just before"), within_seconds=_SETTLED_SECONDS)
