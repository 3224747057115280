"""A move from Metacontroller: `metaloop migrate` foresees it, and children are taken over without a write."""

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import reference_to
from metaloop.devkit.migration.collect import facts_of_all
from metaloop.devkit.migration.findings import Finding, Level, findings_of
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.story import Story, config_maps_of

from .apart import Apart


async def test_children_as_metacontroller_leaves_them_are_taken_over_as_they_are(story: Story) -> None:
    controller = story.controller_manifest()
    controller["metadata"] = {**unstructured.metadata(controller), "labels": {**Apart(story.name).labels}}
    await story.cluster.create(COMPOSITES, controller)  # nobody serves it yet
    parent = await story.parent("p", text="before")
    for desired in config_maps_of({"parent": parent}):
        await story.cluster.create(CONFIG_MAPS, _as_metacontroller_leaves(desired, parent), namespace=story.name)

    findings = await _foreseen(story)
    assert [finding.level for finding in findings] == [Level.DIFFERS]
    assert "more calls at once than Metacontroller's five" in findings[0].message

    before = await story.config_maps(of="p")
    labels: JsonObject = dict.fromkeys(Apart(story.name).labels)
    await story.cluster.patch(COMPOSITES, "", story.name, {"metadata": {"labels": labels}})
    await eventually(lambda: story.rested("p"))
    assert await story.config_maps(of="p") == before

    await story.change("p", text="after")
    await eventually(lambda: story.shows("p", text="after"))


def _as_metacontroller_leaves(desired: JsonObject, parent: JsonObject) -> JsonObject:
    """A child with its owner, and the record of what was applied: the answer, with the namespace of its parent."""
    applied: JsonObject = {**desired, "metadata": {**unstructured.metadata(desired), "namespace": unstructured.namespace(parent)}}
    annotations: JsonObject = {LAST_APPLIED_ANNOTATION: dumps(applied).decode()}
    metadata: JsonObject = {**unstructured.metadata(applied), "ownerReferences": [reference_to(parent)], "annotations": annotations}
    return {**applied, "metadata": metadata}


async def _foreseen(story: Story) -> list[Finding]:
    """What is said of the story's controller."""
    async with KubeClient.connect(str(story.lab.platform.plane.kubeconfig_path)) as kube:
        [facts] = [facts async for facts in facts_of_all(kube) if unstructured.name(facts.raw) == story.name]
    return findings_of(facts)
