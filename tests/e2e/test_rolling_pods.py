"""Rolling updates of Pods, as StatefulSets know them: recreated one by one, each ready before the next; the test plays
their kubelet.
"""

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import STORY_LABEL, Story

PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True, has_status=True)
CONFIG_MAPS: JsonObject = {"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}
ROLLING_PODS: JsonObject = {
    "apiVersion": "v1",
    "resource": "pods",
    "updateStrategy": {"method": "RollingRecreate", "statusChecks": {"conditions": [{"type": "Ready", "status": "True"}]}},
}


def stateful(request: JsonObject) -> JsonObject:
    """The last Pod first, as StatefulSets update; and a ConfigMap, which does not roll."""
    parent = unstructured.child_object(request, "parent")
    name, spec = unstructured.name(parent), unstructured.child_object(parent, "spec")
    template = unstructured.child_object(spec, "template")
    labels: JsonObject = {"parent": name}
    children: list[JsonValue] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{index}", "labels": labels},
            "spec": {"containers": [{"name": "web", "image": template.get("image"), "ports": [{"containerPort": 80}]}]},
        }
        for index in reversed(range(unstructured.integer(spec, "replicas")))
    ]
    config: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": labels},
        "data": {"image": template.get("image")},
    }
    return {"children": [*children, config]}


async def test_pods_are_recreated_one_by_one_from_the_last_to_the_first(story: Story) -> None:
    await _web(story, replicas=3)
    before = await _uids(story)

    await story.change("web", template={"image": "web:2"})

    for index in (2, 1, 0):
        await _is_replaced(story, f"web-{index}", before)
        assert await _images(story) == {f"web-{each}": "web:2" if each >= index else "web:1" for each in range(3)}
        await _run(story, f"web-{index}")
    config = (await story.config_maps(of="web"))["web"]
    assert config["data"] == {"image": "web:2"}


async def _web(story: Story, *, replicas: int) -> None:
    """A parent with this many Pods, all of them running."""
    parent: JsonObject = {
        "apiVersion": story.parents.api_version,
        "resource": story.parents.resource,
        "labelSelector": {"matchLabels": {STORY_LABEL: story.name}},
        "revisionHistory": {"fieldPaths": ["spec.template"]},
    }
    await story.controller(stateful, children=[ROLLING_PODS, CONFIG_MAPS], parentResource=parent)
    await story.parent("web", replicas=replicas, template={"image": "web:1"})
    await _has_images(story, {f"web-{index}": "web:1" for index in range(replicas)})
    for index in range(replicas):
        await _run(story, f"web-{index}")


async def _run(story: Story, pod: str) -> None:
    """The kubelet says that a Pod is ready."""

    async def run() -> None:
        try:
            await story.cluster.patch(
                PODS, story.name, pod, {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, subresource="status"
            )
        except ApiRefused as refusal:
            raise AssertionError(str(refusal)) from refusal

    await eventually(run)


async def _is_replaced(story: Story, pod: str, before: dict[str, str]) -> None:
    async def check() -> None:
        found = await _uids(story)
        expect(pod in found and found[pod] != before[pod], f"{pod} is not replaced yet")

    await eventually(check)


async def _has_images(story: Story, images: dict[str, str]) -> None:
    async def check() -> None:
        found = await _images(story)
        expect(found == images, f"Pods have {found}, not {images}")

    await eventually(check)


async def _pods(story: Story) -> list[JsonObject]:
    return [pod for pod in await story.cluster.list(PODS, story.name) if not unstructured.is_deleting(pod)]


async def _uids(story: Story) -> dict[str, str]:
    return {unstructured.name(pod): unstructured.uid(pod) for pod in await _pods(story)}


async def _images(story: Story) -> dict[str, JsonValue]:
    return {unstructured.name(pod): pod["spec"]["containers"][0]["image"] for pod in await _pods(story)}  # type: ignore[index, call-overload]
