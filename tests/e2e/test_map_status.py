"""The status of a MapController's parent, resyncs, failing inputs, and specs that can't be served."""

import asyncio
from collections.abc import Awaitable

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed import builtin, manifests
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import child_rule
from metaloop.devkit.testbed.mapping import Mapped, copying
from metaloop.devkit.testbed.story import THINGS, Story
from metaloop.devkit.testbed.webhook import Answer, Reply

REALMS = manifests.parent_resource("maprealms", namespaced=False)


@pytest.fixture
def mapped(story: Story) -> Mapped:
    return Mapped(story=story, name=story.name)


async def test_status_counts_inputs_and_outputs(mapped: Mapped) -> None:
    await mapped.install(copying("one", "two"))
    await mapped.parent("p")
    for name in "abc":
        await mapped.input(name)

    await eventually(lambda: mapped.counts(inputs=3, outputs=6))
    await eventually(lambda: mapped.ready("True"))
    status = await mapped.status()
    assert (status["failing"], status["observedGeneration"]) == ({"count": 0, "inputs": []}, 1)

    await mapped.relabel("a", None)

    await eventually(lambda: mapped.counts(inputs=2, outputs=4))


async def test_status_counts_the_conditions_of_outputs(mapped: Mapped) -> None:
    def pod(request: JsonObject) -> JsonObject:
        return {"outputs": [builtin.pod(unstructured.name(unstructured.child_object(request, "input")))]}

    await mapped.install(pod, outputResources=[child_rule(builtin.PODS.id)])
    await mapped.parent("p")
    for name in "ab":
        await mapped.input(name)
    await eventually(lambda: mapped.called(2))

    async def conditions(ready: str) -> None:
        listed: list[JsonObject] = [{"type": "Ready", "status": ready}, {"type": "PodScheduled", "status": "True"}]
        await mapped.story.cluster.patch(builtin.PODS, mapped.story.name, "a", {"status": {"conditions": [*listed]}}, subresource="status")

    await eventually(lambda: mapped.story.cluster.get(builtin.PODS, mapped.story.name, "a"))
    await conditions("True")

    async def counted(expected: JsonObject) -> None:
        found = unstructured.child_object(await mapped.status(), "outputs")
        expect(found == {"pods": expected}, f"the status counts {found}")

    await eventually(lambda: counted({"total": 2, "ready": 1, "podScheduled": 1}))
    await conditions("False")
    await eventually(lambda: counted({"total": 2, "ready": 0, "podScheduled": 1}))


async def test_failing_input_is_told_and_does_not_hold_the_others(mapped: Mapped) -> None:
    def all_but_b(request: JsonObject) -> Answer | Awaitable[Answer]:
        name = unstructured.name(unstructured.child_object(request, "input"))
        return Reply(body=b"no", status=500) if name == "b" and not healed else copying("copy")(request)

    healed: list[bool] = []
    await mapped.install(all_but_b)
    await mapped.parent("p")
    for name in "abc":
        await mapped.input(name, text=name)

    await eventually(lambda: mapped.has({"a-p-copy": "a", "c-p-copy": "c"}))

    async def b_fails() -> None:
        failing = unstructured.child_object(await mapped.status(), "failing")
        told = [(each["name"], each["reason"]) for each in unstructured.child_objects(failing, "inputs")]
        expect((failing.get("count"), told) == (1, [("b", "StatusUnexpected")]), f"failing is {failing}")

    await eventually(b_fails)
    await eventually(lambda: mapped.ready("False"))
    await eventually(lambda: mapped.story.warning(of="p", containing=f"ConfigMap {mapped.story.name}/b"))

    healed.append(True)

    await eventually(lambda: mapped.has({f"{name}-p-copy": name for name in "abc"}), within_seconds=60)
    await eventually(lambda: mapped.ready("True"))


async def test_at_rest_nothing_is_written_and_no_hook_called(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    await mapped.parent("p")
    for name in "abc":
        await mapped.input(name)
    await eventually(lambda: mapped.ready("True"))
    await eventually(lambda: mapped.counts(inputs=3, outputs=3))
    await eventually(mapped.rested)
    calls, mark = len(mapped.calls()), mapped.story.lab.audit.mark()

    await steadily(mapped.no_more_than(calls), for_seconds=2)

    assert await mapped.story.writes_since(mark) == []


async def test_burst_of_inputs_costs_few_status_writes(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    await mapped.parent("p")
    await eventually(lambda: mapped.ready("True"))
    mark, count = mapped.story.lab.audit.mark(), 1_000

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(mapped.input(f"i{number}"))

    await eventually(lambda: mapped.counts(inputs=count, outputs=count), within_seconds=120)
    status_writes = [write for write in await mapped.story.writes_since(mark) if THINGS.resource in write]
    assert len(status_writes) <= 10


async def test_inputs_are_mapped_again_in_each_period(mapped: Mapped) -> None:
    await mapped.install(copying("copy"), resyncPeriodSeconds=1)
    await mapped.parent("p")
    await mapped.input("a")
    await mapped.input("b")

    await eventually(lambda: mapped.called(8))

    asked = mapped.asked_about()
    assert abs(asked.count("a") - asked.count("b")) <= 3


async def test_cluster_scoped_parent_maps_inputs_of_all_namespaces(mapped: Mapped, story: Story) -> None:
    await install_parent(story.cluster, REALMS)
    story.parents = REALMS
    await mapped.install(copying("copy"))
    other = f"{story.name}-2"
    namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}}
    await story.cluster.create(NAMESPACES, namespace)
    label, parent = {"of": story.name}, f"{story.name}-p"
    await mapped.parent(parent, match=label)

    await mapped.input("a", text="a", labels=label)
    await mapped.input("a", text="elsewhere", labels=label, namespace=other)

    await eventually(lambda: mapped.has({f"a-{parent}-copy": "a"}))
    await eventually(lambda: mapped.has({f"a-{parent}-copy": "elsewhere"}, namespace=other))
    await eventually(lambda: mapped.counts(inputs=2, outputs=2, of=parent))
    await story.cluster.delete(REALMS, "", parent)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"hooks": {"map": {"webhook": {"url": "http://x"}}, "finalize": {}}}, "spec.hooks.finalize"),
        ({"hooks": {"map": {"webhook": {"url": "http://x"}}, "customize": {}}}, "spec.hooks.customize"),
        ({"outputResources": [{"apiVersion": THINGS.api_version, "resource": THINGS.resource}]}, "spec.outputResources[0]"),
        ({"childResources": []}, "spec.childResources"),
        ({"inputResources": [{"apiVersion": "v1", "resource": "nodes"}]}, "v1/nodes is cluster-scoped"),
        ({"inputResources": [{"apiVersion": "absent.example.com/v1", "resource": "absents"}]}, "waiting for absent.example.com/v1/absents"),
    ],
    ids=["finalize", "customize", "parents as outputs", "unknown field", "cluster-scoped input", "absent input"],
)
async def test_spec_that_cannot_be_served_is_told_with_the_field(mapped: Mapped, spec: dict[str, object], message: str) -> None:
    await mapped.install(copying("copy"), **spec)

    async def is_told() -> None:
        found = await mapped.story.cluster.get(MAPS, "", mapped.name)
        conditions = unstructured.child_objects(unstructured.child_object(found, "status"), "conditions")
        expect(any(message in unstructured.text(each, "message") for each in conditions), f"the conditions are {conditions}")

    await eventually(is_told)


async def test_input_resource_that_appears_later_is_mapped_then(mapped: Mapped, story: Story) -> None:
    late = manifests.parent_resource("maplates")
    await mapped.install(copying("copy"), inputResources=[{"apiVersion": late.api_version, "resource": late.resource}])
    await mapped.parent("p", match={})

    await install_parent(story.cluster, late)
    obj: JsonObject = {"apiVersion": late.api_version, "kind": late.kind, "metadata": {"name": "x"}, "spec": {}}
    await story.cluster.create(late, obj, namespace=story.name)

    await eventually(lambda: mapped.has({"x-p-copy": ""}), within_seconds=60)
    assert set(mapped.asked_about()) == {"x"}
    assert await story.cluster.find(CONFIG_MAPS, story.name, "x-p-copy") is not None
