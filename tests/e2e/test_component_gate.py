"""The deletion of a component waits for what others have: instances of its types, and finalizers on it."""

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import manifests
from metaloop.devkit.testbed.cluster import ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story

from .deployed import Deployed, answering

CRDS = ResourceInfo(
    api_version="apiextensions.k8s.io/v1",
    resource="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    has_status=True,
)


@pytest.fixture
def deployed(story: Story) -> Deployed:
    return Deployed(story=story)


async def test_type_stays_while_others_use_it_whether_it_is_redundant_or_its_component_goes(deployed: Deployed) -> None:
    widgets = manifests.parent_resource(f"w{deployed.name.replace('-', '')}s")
    crd = manifests.crd(widgets)
    await deployed.install(answering(crd, config_map("a")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))
    await eventually(lambda: made(deployed, widgets))

    deployed.story.now_answers(answering(config_map("a")), "generate")
    await deployed.story.change("app", text="without the type")
    await eventually(lambda: deployed.is_in_state("Processing", containing="deletion is blocked by"))

    await deployed.delete()
    await eventually(lambda: deployed.is_in_state("Deleting", reason="DeletionBlocked", containing="theirs"))
    await deployed.exists(CRDS, unstructured.name(crd))
    await deployed.exists(widgets, "theirs")

    await deployed.story.cluster.delete(widgets, deployed.name, "theirs")
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
    await deployed.is_gone(CRDS, unstructured.name(crd))


async def made(deployed: Deployed, widgets: ResourceInfo) -> None:
    """Somebody else makes an instance. Its type may not be served at once."""
    obj: JsonObject = {"apiVersion": widgets.api_version, "kind": widgets.kind, "metadata": {"name": "theirs"}}
    try:
        await deployed.story.cluster.create(widgets, obj, namespace=deployed.name)
    except ApiRefused as refusal:
        expect(refusal.code != 404, f"{widgets.resource} are not served yet")
        raise


async def test_component_stays_while_it_has_finalizers_of_others(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a")))
    await deployed.story.parent("app")
    status = await eventually(lambda: deployed.is_in_state("Ready"))
    assert status["state"] == "Ready"
    app = await deployed.story.cluster.get(deployed.story.parents, deployed.name, "app")
    ours: list[JsonValue] = [*unstructured.finalizers(app)]
    await deployed.story.cluster.patch(
        deployed.story.parents, deployed.name, "app", {"metadata": {"finalizers": [*ours, "testbed.example.com/other"]}}
    )

    await deployed.delete()
    await eventually(lambda: deployed.is_in_state("Deleting", reason="DeletionBlocked", containing="testbed.example.com/other"))

    await deployed.story.cluster.patch(deployed.story.parents, deployed.name, "app", {"metadata": {"finalizers": ours}})
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
