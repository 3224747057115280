"""What all tests share: a real control plane for each process, property tests without deadlines, and their order."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
import structlog
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.scheduler.protocol import Scheduling

from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.plane import bare_plane

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# The default draws each traceback with all local variables, which takes longer than most tests that crash something.
_plain_lines = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
structlog.configure(processors=[*structlog.get_config()["processors"][:-1], _plain_lines])

_END_TO_END = Path(__file__).parent / "tests" / "e2e"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_plane() -> AsyncIterator[ControlPlane]:
    """A control plane for all tests of this process that need nothing more, each in a namespace of its own."""
    async with bare_plane() as plane:
        yield plane


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Whether a file has none of the tests that are asked for, which is found out faster than by its import."""
    asked_for = str(config.getoption("markexpr"))
    is_end_to_end = collection_path == _END_TO_END or _END_TO_END in collection_path.parents
    if asked_for.startswith("not e2e"):
        return is_end_to_end or None
    if asked_for.startswith("e2e") and collection_path.suffix == ".py" and not is_end_to_end:
        return "mark.e2e" not in collection_path.read_text() or None
    return None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    """Files are distributed, but one process runs all end-to-end tests of libraries and services.

    So only that one starts the control plane that they share. What is left does not take longer in the other processes.
    """
    return _ByControlPlane(config, log) if str(config.getoption("markexpr")).startswith("e2e") else None


class _ByControlPlane(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return file if file.startswith("tests/") else "libs and services"
