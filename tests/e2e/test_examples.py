"""The scenario of every example, with the manifests and hooks in examples/; where Pods must run, the scenario stands in
for the kubelet.
"""

from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from metaloop.common.objects import unstructured
from metaloop.devkit.demo import SCENARIOS, play
from metaloop.devkit.demo.environment import install_example
from metaloop.devkit.demo.output import NoOutput
from metaloop.devkit.demo.scenarios.hellos import HELLOS
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import Lab, install

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def kinds(lab: Lab) -> None:
    """The kinds of all examples, which the garbage collector knows before they are needed."""
    for file in sorted(EXAMPLES.glob("*/crd.yaml")):
        for manifest in yaml.safe_load_all(file.read_text()):
            await install(lab.cluster, manifest)
    await lab.platform.show_kinds_to_controllers()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name", [name for name in SCENARIOS if name != "hello"]
)  # `metaloop demo` plays that one, in the tests of the devkit
async def test_scenario_of_the_example_succeeds(lab: Lab, name: str) -> None:
    async with install_example(lab.platform, lab.stack, example=EXAMPLES / name, namespace=f"demo-{name}") as environment:
        await play(SCENARIOS[name], environment, NoOutput())


async def test_every_example_has_a_scenario() -> None:
    folders = {folder.name for folder in EXAMPLES.iterdir() if (folder / "hook.py").exists()}

    expect(folders == set(SCENARIOS), f"examples are {sorted(folders)}, scenarios are {sorted(SCENARIOS)}")


async def test_the_hello_that_users_try_first_is_greeted_in_three_languages(lab: Lab) -> None:
    """The scenario has Hellos of its own; this one is in the file that the README of the example tells its readers to
    apply.
    """
    async with install_example(lab.platform, lab.stack, example=EXAMPLES / "hello", namespace="default") as environment:
        await environment.apply("hello.yaml")

        await eventually(lambda: _greets(lab.cluster, "World"))
        await lab.cluster.patch(HELLOS, "default", "world", {"spec": {"who": "Moon"}})
        await eventually(lambda: _greets(lab.cluster, "Moon"))


async def _greets(cluster: Cluster, who: str) -> None:
    listed = await cluster.list(CONFIG_MAPS, "default", labels="language")
    found = {unstructured.name(each): unstructured.text(unstructured.child_object(each, "data"), "greeting") for each in listed}
    wanted = {"world-english": f"Hello, {who}!", "world-french": f"Bonjour, {who}!", "world-german": f"Guten Tag, {who}!"}
    status = unstructured.child_object(await cluster.get(HELLOS, "default", "world"), "status")
    expect((found, status.get("greetings")) == (wanted, len(wanted)), f"greetings are {found}, status is {status}")
