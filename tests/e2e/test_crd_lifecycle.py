"""Parent kinds that come late, or go while they are watched."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CRDS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import parent_resource
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of, teardown_in_order, three_config_maps


async def test_controller_starts_by_itself_when_its_parents_crd_appears(story: Story) -> None:
    story.parents = parent_resource("latecomers")
    await story.controller()
    await eventually(lambda: story.warning(of=story.name, containing="latecomers", reason=""))

    await install_parent(story.cluster, story.parents)
    await story.parent("p")

    await eventually(lambda: story.settled("p"))


async def test_crd_deleted_while_watched_has_its_objects_finalized_and_may_come_back(story: Story) -> None:
    neighbour = Story(lab=story.lab, name=f"{story.name[:50]}-neighbour")
    await neighbour.begin()
    await neighbour.controller()
    story.parents = parent_resource("leavers")
    await install_parent(story.cluster, story.parents)
    await story.controller(hooks={"sync": story.hook("sync", three_config_maps), "finalize": story.hook("finalize", teardown_in_order)})
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.delete(CRDS, "", f"{story.parents.resource}.{story.parents.group}")
    await eventually(lambda: _gone(story))
    assert story.calls("finalize")
    await neighbour.parent("n")
    await eventually(lambda: neighbour.settled("n"))
    await neighbour.end()
    await install_parent(story.cluster, story.parents)
    await story.parent("q")
    await eventually(lambda: story.settled("q"), within_seconds=30)


async def test_parent_kind_without_status_subresource_is_refused_by_name(story: Story) -> None:
    story.parents = parent_resource("statusless", has_status=False)
    await install_parent(story.cluster, story.parents)

    await story.controller()

    await eventually(lambda: story.warning(of=story.name, containing="does not have subresource 'Status' enabled"))


async def test_cluster_scoped_parent_has_children_where_it_says(story: Story) -> None:
    story.parents = parent_resource("globals", namespaced=False)
    await install_parent(story.cluster, story.parents)

    def in_our_namespace(request: JsonObject) -> JsonObject:
        children = config_maps_of(request)
        for child in children:
            unstructured.metadata(child)["namespace"] = story.name
        return answer_with(request, children)

    await story.controller(in_our_namespace)

    await story.parent("p", text="far")

    await eventually(lambda: story.shows("p", text="far"))
    await eventually(lambda: story.settled("p"))


async def _gone(story: Story) -> None:
    found = await story.cluster.find(CRDS, "", f"{story.parents.resource}.{story.parents.group}")
    expect(found is None, "the CRD is still there")
