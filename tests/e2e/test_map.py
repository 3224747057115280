"""MapControllers: for every input that a parent selects, the outputs that the hook answers."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.devkit.testbed.builtin import SECRETS
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, MAPS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import child_rule
from metaloop.devkit.testbed.mapping import Mapped, copying
from metaloop.devkit.testbed.story import THINGS, Story

KEY = "metaloop.dev/map-key"


@pytest.fixture
def mapped(story: Story) -> Mapped:
    return Mapped(story=story, name=story.name)


async def test_every_selected_input_has_its_outputs(mapped: Mapped) -> None:
    """Of each input resource. Neither the parent nor anything else gets a finalizer."""
    listed = [{"apiVersion": each.api_version, "resource": each.resource} for each in (CONFIG_MAPS, SECRETS)]
    await mapped.install(copying("one", "two"), inputResources=listed)
    await mapped.parent("p")
    for name in ("a", "b"):
        await mapped.input(name, text=name)
    await mapped.input("other", labels={"input": "no"})
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret", "labels": {"input": "yes"}}}
    await mapped.story.cluster.create(SECRETS, secret, namespace=mapped.story.name)

    texts = {"a": "a", "b": "b", "secret": ""}
    await eventually(lambda: mapped.has({f"{name}-p-{suffix}": text for name, text in texts.items() for suffix in ("one", "two")}))

    assert set(mapped.asked_about()) == set(texts)
    found = [await mapped.story.cluster.get(THINGS, mapped.story.name, "p"), *(await mapped.outputs()).values()]
    assert not any(unstructured.finalizers(each) for each in found)


async def test_output_is_controlled_by_the_parent_and_carries_the_map_key(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    parent = await mapped.parent("p")
    source = await mapped.input("a", text="text")
    await eventually(lambda: mapped.has({"a-p-copy": "text"}))

    [found] = (await mapped.outputs()).values()

    owner = controller_ref(found)
    assert owner is not None
    assert owner.uid == unstructured.uid(parent)
    key = unstructured.uid(source)
    assert unstructured.labels(found)[KEY] == unstructured.annotations(found)[KEY] == key
    listed = await mapped.story.cluster.list(CONFIG_MAPS, mapped.story.name, labels=f"{KEY}={key}")
    assert [unstructured.name(each) for each in listed] == ["a-p-copy"]


@pytest.mark.parametrize(("version", "name"), [("v1", "a-p-copy"), ("v2", "{namespace}/a-p-copy")])
async def test_hook_is_shown_the_input_and_its_outputs(mapped: Mapped, version: str, name: str) -> None:
    await mapped.install(copying("copy"), hooks={"map": mapped.hook("map", copying("copy"), version=version)})
    await mapped.parent("p")
    source = await mapped.input("a")
    await mapped.input("b")
    shown = [name.format(namespace=mapped.story.name)]
    await eventually(lambda: mapped.has({f"{each}-p-copy": "" for each in "ab"}))

    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a", {"data": {"text": "changed"}})

    async def is_shown() -> None:
        last = [call.request for call in mapped.calls() if call.request["mapKey"] == unstructured.uid(source)][-1:]
        groups = [unstructured.child_object(unstructured.child_object(each, "outputs"), "ConfigMap.v1") for each in last]
        expect([[*group] for group in groups] == [shown], f"the hook was shown {groups}")

    await eventually(is_shown)
    request = mapped.calls()[-1].request
    assert request.keys() == {"controller", "parent", "mapKey", "input", "outputs"}
    assert unstructured.kind(unstructured.child_object(request, "controller")) == "MapController"


async def test_changed_input_costs_one_call_and_one_write(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    await mapped.parent("p")
    for name in "abc":
        await mapped.input(name, text="before")
    await eventually(lambda: mapped.has({f"{name}-p-copy": "before" for name in "abc"}))
    await eventually(lambda: mapped.counts(inputs=3, outputs=3))
    await eventually(lambda: mapped.ready("True"))
    await eventually(mapped.rested)
    calls, mark = len(mapped.calls()), mapped.story.lab.audit.mark()

    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "b", {"data": {"text": "after"}})
    await eventually(lambda: mapped.has({"a-p-copy": "before", "b-p-copy": "after", "c-p-copy": "before"}))

    await eventually(mapped.rested)
    await steadily(mapped.no_more_than(calls + 1))
    assert mapped.asked_about()[calls:] == ["b"]
    assert await mapped.story.writes_since(mark) == ["update configmaps/b-p-copy"]


async def test_changed_parent_has_every_input_mapped_again(mapped: Mapped) -> None:
    def hook(request: JsonObject) -> JsonObject:
        spec = unstructured.child_object(unstructured.child_object(request, "parent"), "spec")
        answer = copying("copy")(request)
        [output] = unstructured.child_objects(answer, "outputs")  # type: ignore[arg-type]
        return {"outputs": [{**output, "data": {"text": unstructured.text(spec, "text")}}]}

    await mapped.install(hook)
    await mapped.parent("p", text="before")
    for name in "ab":
        await mapped.input(name)
    await eventually(lambda: mapped.has({"a-p-copy": "before", "b-p-copy": "before"}))

    await mapped.story.cluster.patch(THINGS, mapped.story.name, "p", {"spec": {"text": "after"}})

    await eventually(lambda: mapped.has({"a-p-copy": "after", "b-p-copy": "after"}))


async def test_output_that_drifted_or_was_deleted_is_mended(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    await mapped.parent("p")
    await mapped.input("a", text="right")
    await eventually(lambda: mapped.has({"a-p-copy": "right"}))

    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a-p-copy", {"data": {"text": "wrong"}})
    await eventually(lambda: mapped.has({"a-p-copy": "right"}))
    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a-p-copy", {"metadata": {"labels": {KEY: None}}})

    async def is_labelled() -> None:
        found = await mapped.story.cluster.get(CONFIG_MAPS, mapped.story.name, "a-p-copy")
        expect(KEY in unstructured.labels(found), "the label is missing")

    await eventually(is_labelled)
    await mapped.story.cluster.delete(CONFIG_MAPS, mapped.story.name, "a-p-copy")

    await eventually(lambda: mapped.has({"a-p-copy": "right"}))


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
@pytest.mark.parametrize(("method", "text"), [("OnDelete", "before"), ("InPlace", "after"), ("Recreate", "after")])
async def test_outputs_are_updated_as_children_are(mapped: Mapped, strategy: str, method: str, text: str) -> None:
    manifest = mapped.manifest(copying("copy"), outputResources=[child_rule(method=method)])
    manifest["metadata"] = {**unstructured.metadata(manifest), "annotations": {"metaloop.dev/apply-strategy": strategy}}
    await mapped.story.cluster.create(MAPS, manifest)
    await mapped.parent("p")
    await mapped.input("a", text="before")
    await eventually(lambda: mapped.has({"a-p-copy": "before"}))
    calls = len(mapped.calls())

    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a", {"data": {"text": "after"}})

    await eventually(lambda: mapped.called(calls + 1))
    await eventually(lambda: mapped.has({"a-p-copy": text}))


async def test_deletion_guard_holds_back_outputs_that_are_no_longer_desired(mapped: Mapped) -> None:
    manifest = mapped.manifest(copying(*"uvwxyz"))
    manifest["metadata"] = {**unstructured.metadata(manifest), "annotations": {"metaloop.dev/max-delete-share": "0.5"}}
    await mapped.story.cluster.create(MAPS, manifest)
    await mapped.parent("p")
    await mapped.input("a")
    desired = {f"a-p-{suffix}": "" for suffix in "uvwxyz"}
    await eventually(lambda: mapped.has(desired))

    mapped.hook("map", copying())
    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a", {"data": {"text": "changed"}})

    await eventually(lambda: mapped.story.warning(of="p", reason="DeletionHeldBack"))
    await mapped.has(desired)


async def test_output_is_never_mapped_for_its_own_parent(mapped: Mapped) -> None:
    """Even if the parent selects everything, and the outputs are of the same resource as the inputs."""
    await mapped.install(copying("copy"))
    await mapped.parent("p", match={})
    await mapped.input("a", labels={})

    async def each_input_has_one_output() -> None:
        everything = {unstructured.name(each) for each in await mapped.story.cluster.list(CONFIG_MAPS, mapped.story.name)}
        outputs = set(await mapped.outputs())
        expect("kube-root-ca.crt" in everything, "Kubernetes has not made its own yet")
        expect(outputs == {f"{name}-p-copy" for name in everything - outputs}, f"the outputs are {outputs} of {everything}")

    await eventually(each_input_has_one_output)
    await steadily(each_input_has_one_output)
    assert not any(name.endswith("-p-copy") for name in mapped.asked_about())


async def test_two_parents_have_outputs_for_the_same_inputs(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    for name in ("p", "q"):
        await mapped.parent(name)

    await mapped.input("a", text="text")

    await eventually(lambda: mapped.has({"a-p-copy": "text", "a-q-copy": "text"}))


async def test_two_controllers_have_outputs_for_the_same_parent(mapped: Mapped, story: Story) -> None:
    other = Mapped(story=story, name=f"{story.name}-other")
    await mapped.install(copying("one"))
    await other.install(copying("two"))
    await mapped.parent("p")

    await mapped.input("a", text="text")

    await eventually(lambda: mapped.has({"a-p-one": "text"}))
    await eventually(lambda: other.has({"a-p-two": "text"}))
    for each in (mapped, other):
        await eventually(each.rested)
    calls = len(mapped.calls())
    await steadily(mapped.no_more_than(calls))
    await mapped.has({"a-p-one": "text"})
    await other.has({"a-p-two": "text"})


async def test_paused_parent_has_no_input_mapped(mapped: Mapped) -> None:
    await mapped.install(copying("copy"))
    await mapped.parent("p")
    await mapped.input("a", text="before")
    await eventually(lambda: mapped.has({"a-p-copy": "before"}))
    pause: JsonObject = {"metadata": {"annotations": {"metaloop.dev/paused": "true"}}}
    await mapped.story.cluster.patch(THINGS, mapped.story.name, "p", pause)
    await eventually(lambda: mapped.story.normal_event(of="p", reason="Paused"))

    await mapped.story.cluster.patch(CONFIG_MAPS, mapped.story.name, "a", {"data": {"text": "after"}})
    await steadily(lambda: _never_shown(mapped, text="after"))
    await mapped.story.cluster.patch(THINGS, mapped.story.name, "p", {"metadata": {"annotations": {"metaloop.dev/paused": None}}})

    await eventually(lambda: mapped.has({"a-p-copy": "after"}))
    await eventually(lambda: mapped.ready("True"))


async def _never_shown(mapped: Mapped, *, text: str) -> None:
    """Raise AssertionError if the hook was asked about an input with this text."""
    shown = [unstructured.child_object(unstructured.child_object(call.request, "input"), "data") for call in mapped.calls()]
    expect(all(data.get("text") != text for data in shown), f"the hook was asked about {text!r}")
