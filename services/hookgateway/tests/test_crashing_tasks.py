"""Each long-running task of the gateway crashes: it goes on, or the process ends with a failure. None goes missing."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from metaloop.common.testing.polling import eventually
from metaloop.devkit.testbed.crashes import RunningService
from metaloop.devkit.testbed.eventually import eventually as comes_true
from metaloop.hookgateway.app import build
from metaloop.hookgateway.settings import Settings

GO_ON = {"cleanup"}
END = {"credentials"}
"""It knows which objects are watched: a new process begins from a known state."""
ERRORS = [RuntimeError("thrown by a test"), ExceptionGroup("thrown by a test", [RuntimeError("one"), KeyError("two")])]


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningService]:
    settings = Settings(kubeconfig=str(tmp_path / "none"))
    async with RunningService.start(partial(build, settings=settings)) as running:
        yield running


async def test_every_long_running_task_is_among_those_that_crash_here(gateway: RunningService):
    assert set(gateway.tasks()) == GO_ON | END


@pytest.mark.parametrize("error", ERRORS, ids=["plain", "group"])
async def test_cleanup_goes_on_after_a_crash(gateway: RunningService, error: Exception):
    await gateway.crash("cleanup", error)

    await eventually(lambda: "cleanup" in gateway.tasks())
    await comes_true(gateway.check_ready)


@pytest.mark.parametrize("error", ERRORS, ids=["plain", "group"])
async def test_crash_of_the_credentials_task_ends_the_process(gateway: RunningService, error: Exception):
    await gateway.crash("credentials", error)

    assert await gateway.failed()
    assert not await gateway.is_ready()
