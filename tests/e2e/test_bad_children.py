"""Children that nobody could keep: each is an error with a reason on the parent; nothing leaks, nothing loops, and
nothing that is there is deleted.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.devkit.testbed.audit import tally
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import Lab, install_parent
from metaloop.devkit.testbed.manifests import child_rule, config_map, parent_resource
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of, three_config_maps

WORLDS = parent_resource("baddies", namespaced=False)
SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
CLUSTER_ROLES = ResourceInfo(api_version="rbac.authorization.k8s.io/v1", resource="clusterroles", kind="ClusterRole", namespaced=False)
_TRIES, _TRIES_SECONDS = 9, 0.3
"""A backoff from 5 ms, doubled each time, puts more than a second between the first try and the ninth, or a third of it
where changes come between; a loop puts none.
"""


def _labelled(**metadata: JsonValue) -> JsonObject:
    return {"labels": {"parent": "p"}, **metadata}


def _config_map(**metadata: JsonValue) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _labelled(**metadata)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """Children that an answer has beside the good ones, and words that the Warning has to have in it."""

    children: list[JsonObject]
    words: tuple[str, ...]


BAD_CHILDREN = {
    "of a kind that is not declared": Bad(
        children=[{"apiVersion": "v1", "kind": "Secret", "metadata": _labelled(name="bad")}],
        words=("children[3].kind", "Secret bad", "v1 Secret", "does not declare"),
    ),
    "with labels that are no strings": Bad(
        children=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad", "labels": {"parent": "p", "count": 3}}}],
        words=("children[3].metadata.labels", "strings"),
    ),
}
"""What else is refused, and in which words, stands in the tests of the reconciler's `hooks/validation`."""


@pytest.mark.parametrize("case", BAD_CHILDREN)
async def test_bad_child_is_an_error_of_its_parent_and_nothing_is_written(story: Story, case: str) -> None:
    bad = BAD_CHILDREN[case]
    await story.controller(children=[child_rule(), child_rule(ResourceId(CLUSTER_ROLES.api_version, "clusterroles"))])
    await story.parent("p", text="before")
    await eventually(lambda: story.rested("p"))
    mark = story.lab.audit.mark()
    calls = len(story.calls())

    story.now_answers(lambda request: {"status": {"bad": True}, "children": [*config_maps_of(request), *bad.children]})
    await story.change("p", text="after")

    await eventually(lambda: _warned_of(story, bad.words))
    await eventually(lambda: story.called(calls + _TRIES))
    assert await _writes(story, mark) == Counter()
    tries = story.calls()[calls:]
    assert tries[_TRIES - 1].started_at - tries[0].started_at > _TRIES_SECONDS
    await eventually(lambda: _told_on_the_controller(story), within_seconds=40)
    story.now_answers(three_config_maps)
    await story.change("p", text="well again")
    await eventually(lambda: story.shows("p", text="well again"))


async def test_name_of_a_foreign_object_is_told_and_the_other_children_are_written(story: Story) -> None:
    foreign = await story.cluster.create(CONFIG_MAPS, config_map("p-1", data={"text": "foreign"}), namespace=story.name)
    await story.controller()

    await story.parent("p", text="mine")

    await eventually(lambda: _warned_of(story, ("create ConfigMap", "p-1", "name is taken")))
    await eventually(lambda: story.settled("p", children=2))
    assert await story.cluster.get(CONFIG_MAPS, story.name, "p-1") == foreign
    await story.cluster.delete(CONFIG_MAPS, story.name, "p-1")
    await eventually(lambda: story.settled("p"), within_seconds=40)


async def test_child_that_the_api_server_refuses_is_told_and_the_others_are_written(story: Story) -> None:
    def one_is_invalid(request: JsonObject) -> JsonObject:
        return answer_with(request, [*config_maps_of(request), config_map("Not_A_Name", labels={"parent": "p"})])

    await story.controller(one_is_invalid)

    await story.parent("p", text="good")

    await eventually(lambda: _warned_of(story, ("create ConfigMap", "Not_A_Name", "Invalid")))
    await eventually(lambda: story.settled("p"))
    await story.shows("p", text="good")


async def test_field_that_may_not_change_is_told_and_nothing_is_deleted(story: Story) -> None:
    def immutable(request: JsonObject) -> JsonObject:
        return answer_with(request, [{**child, "immutable": True} for child in config_maps_of(request)])

    await story.controller(immutable)
    await story.parent("p", text="before")
    await eventually(lambda: story.shows("p", text="before"))

    await story.change("p", text="after")

    await eventually(lambda: _warned_of(story, ("update ConfigMap", "p-", "immutable")))
    await steadily(lambda: story.shows("p", text="before"), for_seconds=0.5)


@pytest_asyncio.fixture(loop_scope="session")
async def world(lab: Lab, request: pytest.FixtureRequest) -> AsyncIterator[Story]:
    """A story of cluster-scoped parents."""
    await install_parent(lab.cluster, WORLDS)
    story = Story(lab=lab, name=f"bad-world-{len(request.node.name)}", parents=WORLDS)
    await story.begin()
    yield story
    await story.end()
    await story.cluster.delete(WORLDS, "", "p")


async def test_namespaced_child_of_a_cluster_scoped_parent_needs_a_namespace(world: Story) -> None:
    await world.controller()

    await world.parent("p", text="nowhere")

    await eventually(lambda: _warned_of(world, ("children[0].metadata.namespace", "cluster-scoped")))
    world.now_answers(lambda request: answer_with(request, [_placed(child, world.name) for child in config_maps_of(request)]))
    await world.change("p", text="somewhere")
    await eventually(lambda: world.settled("p"))
    assert set((await world.texts(of="p")).values()) == {"somewhere"}


async def test_cluster_scoped_child_of_a_cluster_scoped_parent_is_a_child(world: Story) -> None:
    """A namespace is given to no object whose kind has none."""
    name = f"{world.name}-child"

    def one_namespace(request: JsonObject) -> JsonObject:
        shown = unstructured.child_object(unstructured.child_object(request, "children"), "Namespace.v1")
        child: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": _labelled(name=name)}
        return {"status": {"children": len(shown)}, "children": [child]}

    await world.controller(one_namespace, children=[child_rule(NAMESPACES.id)])

    await world.parent("p")

    await eventually(lambda: world.settled("p", children=1))
    assert unstructured.labels(await world.cluster.get(NAMESPACES, "", name))["parent"] == "p"


def _placed(child: JsonObject, namespace: str) -> JsonObject:
    return {**child, "metadata": {**unstructured.metadata(child), "namespace": namespace}}


async def _writes(story: Story, mark: int) -> Counter[str]:
    """What was written to anything but the controller's own status."""
    ours = await story.lab.audit.ours_since(mark)
    return tally(
        [each for each in ours if each.is_write and not each.resource.startswith(COMPOSITES.resource) and each.resource != "leases"]
    )


async def _warned_of(story: Story, words: tuple[str, ...]) -> None:
    """A Warning event of the parent has all these words in it."""
    found = await story.warning(of="p", containing=words[0])
    message = unstructured.text(found, "message")
    for word in words:
        expect(word in message, f"{word!r} is not in {message!r}")


async def _told_on_the_controller(story: Story) -> None:
    found = await story.cluster.get(COMPOSITES, "", story.name)
    status = unstructured.child_object(found, "status")
    expect(status.get("failingParents") == 1, f"the controller's status is {status}")
