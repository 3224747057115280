"""The API server stands still, dies or turns everybody away: nothing is lost, nothing is done twice, and nobody is
asked in a hot loop meanwhile.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.devkit.testbed.apiproxy import ApiProxy
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .many_parents import PARENTS, ManyParents

_INACTIVITY_SECONDS = 3.0
_FROZEN_SECONDS = 3 * _INACTIVITY_SECONDS
"""Long enough that every watch counts as dead more than once."""
_REFUSED_SECONDS = 5.0
_MOST_REQUESTS_A_SECOND = 30.0
"""Of all services together, while none is answered: watches, leases, retries."""
_MOST_TRIES = 12
"""Of one parent within these seconds: its backoff begins at 5 ms and doubles."""
_MOST_REQUESTS_A_TRY = 2 * 4
"""Three children and a status, each sent a second time after a 401, with the credentials read anew."""
_SETTLED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Remote:
    """Parents whose services reach the API server through a proxy, which the test itself bypasses."""

    lab: Lab
    parents: ManyParents
    proxy: ApiProxy


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def remote(assets: Path) -> AsyncIterator[Remote]:
    """Parents that have settled, in a cluster of their own; no hook was ever called twice at once for one parent."""
    with run_folder() as folder:
        async with Platform.start(assets, folder) as platform, ApiProxy.before(platform.plane, folder) as proxy, Webhook.serve() as webhook:
            await install_parent(platform.cluster, THINGS)
            settings = {"WATCH_INACTIVITY_SECONDS": str(_INACTIVITY_SECONDS)}
            async with platform.stack(kubeconfig=proxy.kubeconfig_path, settings=settings) as stack:
                story = Story(lab=Lab(platform=platform, stack=stack, webhook=webhook), name="remote")
                await story.begin()
                await story.controller()
                parents = ManyParents(story)
                await parents.create()
                yield Remote(story.lab, parents, proxy)
                await story.end()
            assert webhook.overlaps == []


async def test_what_changed_while_the_api_server_stood_still_is_served_when_it_goes_on(remote: Remote) -> None:
    remote.proxy.freeze()
    asked = len(remote.proxy.asked)
    await remote.parents.change("changed behind the ice")
    await asyncio.sleep(_FROZEN_SECONDS)
    asked = len(remote.proxy.asked) - asked

    remote.proxy.thaw()

    await eventually(lambda: remote.parents.all_show("changed behind the ice"), within_seconds=_SETTLED_SECONDS)
    assert asked < _MOST_REQUESTS_A_SECOND * _FROZEN_SECONDS


@pytest.mark.parametrize("code", [401, 429, 503])
async def test_everybody_is_turned_away_for_a_while(remote: Remote, code: int) -> None:
    remote.proxy.refusals["/"] = code
    asked = len(remote.proxy.asked)
    await remote.parents.change(f"changed during {code}")
    await asyncio.sleep(_REFUSED_SECONDS)
    asked = len(remote.proxy.asked) - asked

    remote.proxy.refusals.clear()

    await eventually(lambda: remote.parents.all_show(f"changed during {code}"), within_seconds=_SETTLED_SECONDS)
    assert asked < PARENTS * _MOST_TRIES * _MOST_REQUESTS_A_TRY + _MOST_REQUESTS_A_SECOND * _REFUSED_SECONDS


async def test_the_api_server_is_killed_in_the_middle_of_the_work(remote: Remote) -> None:
    plane = remote.lab.platform.plane
    await remote.parents.change("changed just before")

    await plane.apiserver.kill()
    await plane.apiserver.start()

    await eventually(lambda: remote.parents.all_show("changed just before"), within_seconds=_SETTLED_SECONDS)
