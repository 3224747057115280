"""Every example tells its story to a good end: manifests and hooks as they stand in examples/; where Pods must run, the story plays the kubelet."""

from pathlib import Path

import pytest

from metaloop.devkit.demo import TALES, play
from metaloop.devkit.demo.view import BlindView
from metaloop.devkit.demo.world import furnished
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.lab import Lab

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TALES)
async def test_example_tells_its_story(lab: Lab, name: str) -> None:
    async with furnished(lab.ground, lab.stack, example=EXAMPLES / name, namespace=f"demo-{name}") as world:
        await play(TALES[name], world, BlindView())


async def test_every_example_has_its_story() -> None:
    folders = {folder.name for folder in EXAMPLES.iterdir() if (folder / "hook.py").exists()}

    expect(folders == set(TALES), f"examples are {sorted(folders)}, stories are {sorted(TALES)}")
