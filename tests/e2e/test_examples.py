"""Every example tells its story to a good end: manifests and hooks as they stand in examples/; where Pods must run, the story plays the kubelet."""

from pathlib import Path

import pytest

from metaloop.common.objects import unstructured
from metaloop.devkit.demo import TALES, play
from metaloop.devkit.demo.tales.hellos import HELLOS
from metaloop.devkit.demo.view import BlindView
from metaloop.devkit.demo.world import furnished
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
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


async def test_the_hello_that_users_try_first_is_greeted_in_three_languages(lab: Lab) -> None:
    """The story has Hellos of its own; this one is the file that the example's page has its readers apply."""
    async with furnished(lab.ground, lab.stack, example=EXAMPLES / "hello", namespace="default") as world:
        await world.apply("hello.yaml")

        await eventually(lambda: _greets(lab.cluster, "World"))
        await lab.cluster.patch(HELLOS, "default", "world", {"spec": {"who": "Moon"}})
        await eventually(lambda: _greets(lab.cluster, "Moon"))


async def _greets(cluster: Cluster, who: str) -> None:
    listed = await cluster.list(CONFIG_MAPS, "default", labels="language")
    found = {unstructured.name(each): unstructured.text(unstructured.child_object(each, "data"), "greeting") for each in listed}
    wanted = {"world-english": f"Hello, {who}!", "world-french": f"Bonjour, {who}!", "world-german": f"Guten Tag, {who}!"}
    status = unstructured.child_object(await cluster.get(HELLOS, "default", "world"), "status")
    expect((found, status.get("greetings")) == (wanted, len(wanted)), f"greetings are {found}, status is {status}")
