"""Components that refer to ConfigMaps, and hooks that are called around their passes."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story

from .deployed import Deployed, answering


@pytest.fixture
def deployed(story: Story) -> Deployed:
    return Deployed(story=story)


def copy_of_settings(request: JsonObject) -> JsonObject:
    """A generator that copies what the component refers to."""
    [settings] = unstructured.child_objects(request, "references")
    data = unstructured.strings(settings.get("data"))
    return {"children": [config_map("copy", data=data)]}


async def test_component_waits_for_what_it_refers_to_and_follows_its_changes(deployed: Deployed) -> None:
    await deployed.install(copy_of_settings, references=[{"path": ".spec.text", "kind": "ConfigMap"}])
    await deployed.story.parent("app", text="settings")
    await eventually(lambda: deployed.is_in_state("Pending", reason="Retrying", containing="settings does not exist"))

    async def is_copied(value: str) -> None:
        found = await deployed.exists(CONFIG_MAPS, "copy")
        expect(found.get("data") == {"k": value}, f"the copy has {found.get('data')}")

    await deployed.story.cluster.create(CONFIG_MAPS, config_map("settings", data={"k": "v"}), namespace=deployed.name)
    await eventually(lambda: is_copied("v"))

    await deployed.story.cluster.patch(CONFIG_MAPS, deployed.name, "settings", {"data": {"k": "w"}})
    await eventually(lambda: is_copied("w"))
    await eventually(lambda: deployed.is_in_state("Ready"))


async def test_hooks_are_called_around_passes_and_deletion(deployed: Deployed) -> None:
    names = ("postRead", "preReconcile", "postReconcile", "preDelete", "postDelete")
    hooks: JsonObject = {name: deployed.story.hook(name, lambda _, name=name: {"status": {name: "called"}}) for name in names}
    await deployed.install(answering(config_map("a")), hooks=hooks)
    await deployed.story.parent("app")

    status = await eventually(lambda: deployed.is_in_state("Ready"))
    assert [status.get(name) for name in names] == ["called", "called", "called", None, None]

    deployed.story.now_answers(lambda _: {"retriable": True, "retryAfterSeconds": 0.5, "message": "not yet"}, "preDelete")
    await deployed.delete()
    await eventually(lambda: deployed.is_in_state("DeletionPending", reason="DeletionRetrying", containing="not yet"))
    await deployed.exists(CONFIG_MAPS, "a")

    deployed.story.now_answers(lambda _: {}, "preDelete")
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
    await deployed.is_gone(CONFIG_MAPS, "a")
    assert deployed.calls("postDelete")
