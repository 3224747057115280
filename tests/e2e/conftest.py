"""The lab that all stories share, and each story's own corner of it."""

import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.devkit.assets import ensure, ensure_jaeger
from metaloop.devkit.errors import AssetsMissing
from metaloop.devkit.testbed.jaeger import Jaeger
from metaloop.devkit.testbed.lab import Lab, Platform, install_parent
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Webhook
from metaloop.devkit.workdir import run_folder

from .apart import NOT_APART
from .pace import QUICK

# Room for a suffix, and for the prefix of a finalizer, within the 63 characters of a label.
_LONGEST_NAME = 40


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def assets() -> Path:
    return await ensure()


@pytest.fixture(scope="session")
def workdir() -> Iterator[Path]:
    with run_folder() as folder:
        yield folder


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def platform(assets: Path, workdir: Path) -> AsyncIterator[Platform]:
    """A cluster with our CRDs, the parents of stories, and a broker, and nobody who serves controllers."""
    async with Platform.start(assets, workdir) as platform:
        await install_parent(platform.cluster, THINGS)
        await platform.show_kinds_to_controllers()
        yield platform


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lab(platform: Platform) -> AsyncIterator[Lab]:
    """Everything running, from the first test that asks for it to the end of the session."""
    async with Webhook.serve() as webhook, platform.stack(settings={**QUICK, **NOT_APART}) as stack:
        yield Lab(platform=platform, stack=stack, webhook=webhook)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def jaeger(workdir: Path) -> AsyncIterator[Jaeger]:
    """Where services that are told so send their traces."""
    try:
        program = await ensure_jaeger()
    except AssetsMissing as missing:
        pytest.skip(str(missing))
    async with Jaeger.start(program, workdir) as jaeger:
        yield jaeger


@pytest_asyncio.fixture(loop_scope="session")
async def story(lab: Lab, request: pytest.FixtureRequest) -> AsyncIterator[Story]:
    """A namespace, controller and hook named after the test; no hook was ever asked about one parent twice at once."""
    story = Story(lab=lab, name=_name_of(request.node.name))
    await story.begin()
    yield story
    await story.end()
    overlaps = [str(overlap) for overlap in lab.webhook.overlaps]
    lab.webhook.overlaps.clear()
    assert overlaps == []


def _name_of(test: str) -> str:
    """A DNS label made of a test's name; what is too long for one ends in a hash of it."""
    words = re.sub(r"[^a-z0-9]+", "-", test.removeprefix("test_").lower()).strip("-")
    if len(words) <= _LONGEST_NAME:
        return words
    return f"{words[: _LONGEST_NAME - 7].strip('-')}-{hashlib.sha256(test.encode()).hexdigest()[:6]}"
