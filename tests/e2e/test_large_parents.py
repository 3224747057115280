"""A parent whose children are 20 MB together, with the default settings of all services."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.lab import Lab, install_parent
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import THINGS, Story, answer_with
from metaloop.devkit.workdir import run_folder

_CHILDREN, _BYTES = 2_500, 8_000
_CONVERGED_SECONDS = 240.0


@pytest_asyncio.fixture(loop_scope="session")
async def story(assets: Path) -> AsyncIterator[Story]:
    """A story in a cluster of its own: so many objects would slow others down."""
    with run_folder() as folder:
        async with Lab.start(assets, folder) as lab:
            await install_parent(lab.cluster, THINGS)
            story = Story(lab=lab, name="large")
            await story.begin()
            yield story
            await story.end()


def many_large_children(request: JsonObject) -> JsonObject:
    """The hook: each child has eight kilobytes."""
    name = unstructured.name(unstructured.child_object(request, "parent"))
    data = {"text": "x" * _BYTES}
    return answer_with(request, [config_map(f"{name}-{index}", labels={"parent": name}, data=data) for index in range(_CHILDREN)])


@pytest.mark.timeout(400)
async def test_parent_with_many_large_children_converges(story: Story) -> None:
    await story.controller(many_large_children)

    await story.parent("p")

    await eventually(lambda: story.settled("p", children=_CHILDREN), within_seconds=_CONVERGED_SECONDS)
    assert len(await story.config_maps(of="p")) == _CHILDREN
    assert story.lab.webhook.overlaps == []
    assert not any("lease_lost" in reconciler.log.read_text() for reconciler in story.lab.stack.reconcilers)
