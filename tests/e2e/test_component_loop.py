"""The states of a component over time: too slow, suspended, written again; and the policies of its objects."""

import pytest

from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story

from .deployed import DEPLOYMENTS, Deployed, annotated, answering, deployment


@pytest.fixture
def deployed(story: Story) -> Deployed:
    return Deployed(story=story)


async def has_data(deployed: Deployed, data: JsonObject, name: str = "a") -> None:
    """Raise AssertionError unless the ConfigMap has these data."""
    found = await deployed.exists(CONFIG_MAPS, name)
    expect(found.get("data") == data, f"the data are {found.get('data')}")


async def test_component_that_takes_too_long_is_in_error_until_it_is_ready(deployed: Deployed) -> None:
    await deployed.install(answering(deployment("web")), timeout="1s")
    await deployed.story.parent("app")
    await eventually(lambda: deployed.exists(DEPLOYMENTS, "web"))
    await eventually(lambda: deployed.is_in_state("Error", reason="Timeout", containing="Deployment"))

    await deployed.becomes_available("web")

    await eventually(lambda: deployed.is_in_state("Ready"))


async def test_suspended_component_is_left_alone_until_it_is_not(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a", data={"k": "v"})), parentFields={"suspend": ".spec.suspend"})
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))
    await deployed.story.change("app", suspend=True)
    await eventually(lambda: deployed.is_in_state("Pending", reason="Suspended"))
    deployed.story.now_answers(answering(config_map("a", data={"k": "w"})), "generate")
    calls = len(deployed.calls())
    await deployed.story.change("app", text="changed")
    await has_data(deployed, {"k": "v"})
    assert len(deployed.calls()) == calls

    await deployed.story.change("app", suspend=False)

    await eventually(lambda: has_data(deployed, {"k": "w"}))


async def test_object_is_written_again_after_the_reapply_interval(deployed: Deployed) -> None:
    """Its digest says that it is up to date, so that nothing else brings it back."""
    await deployed.install(answering(config_map("a", data={"k": "v"})), policies={"driftDetection": "Digest"}, reapplyInterval="2s")
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    await deployed.story.cluster.patch(CONFIG_MAPS, deployed.name, "a", {"data": {"k": "w"}})

    await eventually(lambda: has_data(deployed, {"k": "v"}))


async def test_applied_object_keeps_or_loses_the_fields_of_others(deployed: Deployed) -> None:
    merged = annotated(config_map("merged", data={"k": "v"}), update_policy="ssa-merge")
    overridden = annotated(config_map("overridden", data={"k": "v"}), update_policy="ssa-override")
    path = CONFIG_MAPS.collection_path(deployed.name)
    for name in ("merged", "overridden"):
        theirs = dumps(config_map(name, data={"theirs": "x"}))
        await deployed.story.cluster.request("POST", path, body=theirs, params={"fieldManager": "kubectl-create"})
    await deployed.install(answering(merged, overridden))

    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Ready"))
    await has_data(deployed, {"k": "v", "theirs": "x"}, "merged")
    await has_data(deployed, {"k": "v"}, "overridden")


async def test_purged_object_goes_after_its_wave_and_missing_namespace_stays(deployed: Deployed) -> None:
    elsewhere = f"{deployed.name}-made"
    migration = annotated(config_map("migration"), purge_order="0")
    after = annotated(config_map("after", namespace=elsewhere), apply_order="1")
    await deployed.install(answering(migration, after))
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Ready"))
    await deployed.has({"ConfigMap migration": "Completed", "ConfigMap after": "Ready"})
    await deployed.is_gone(CONFIG_MAPS, "migration")
    found = await deployed.exists(NAMESPACES, elsewhere, within="")
    assert not any(name.endswith("/owner-id") for name in unstructured.labels(found))

    await deployed.delete()
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
    await deployed.is_gone(CONFIG_MAPS, "after", within=elsewhere)
    await deployed.exists(NAMESPACES, elsewhere)
    await deployed.story.cluster.delete(NAMESPACES, "", elsewhere)
