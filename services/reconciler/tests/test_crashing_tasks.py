"""Each long-running task of the reconciler crashes: it goes on, or the process ends with a failure. None is missing."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.testing.polling import eventually
from metaloop.devkit.broker import Broker
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.crashes import RunningService
from metaloop.devkit.testbed.eventually import eventually as comes_true
from metaloop.reconciler.app import build_from
from metaloop.reconciler.settings import Settings

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

GO_ON = {"events", "schemas"}
"""They serve many objects: one that crashes them must not end the service of the others."""
END = {"echo", "pull", "renew", "worker"}
"""What they keep would be in doubt: a new process begins from a known state."""
ERRORS = [RuntimeError("thrown by a test"), ExceptionGroup("thrown by a test", [RuntimeError("one"), KeyError("two")])]


@pytest_asyncio.fixture(loop_scope="session")
async def reconciler(plane: ControlPlane, tmp_path: Path) -> AsyncIterator[RunningService]:
    async with Broker.start(tmp_path) as broker:
        settings = Settings(nats_url=broker.url, kubeconfig=str(plane.kubeconfig_path))
        async with RunningService.start(build_from(settings)) as running:
            await eventually(lambda: running.tasks().keys() >= GO_ON | END)
            yield running


async def test_every_long_running_task_is_among_those_that_crash_here(reconciler: RunningService):
    await eventually(lambda: set(reconciler.tasks()) == GO_ON | END)


@pytest.mark.parametrize("error", ERRORS, ids=["plain", "group"])
async def test_task_that_serves_many_objects_goes_on_after_a_crash(reconciler: RunningService, error: Exception):
    for word in sorted(GO_ON):
        await reconciler.crash(word, error)
        await eventually(lambda word=word: word in reconciler.tasks())

    await eventually(lambda: set(reconciler.tasks()) == GO_ON | END)
    await comes_true(reconciler.check_ready)


@pytest.mark.parametrize("error", ERRORS, ids=["plain", "group"])
@pytest.mark.parametrize("word", sorted(END))
async def test_crash_of_any_other_task_ends_the_process(reconciler: RunningService, word: str, error: Exception):
    await reconciler.crash(word, error)

    assert await reconciler.failed()
    assert not await reconciler.is_ready()
