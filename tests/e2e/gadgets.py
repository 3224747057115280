"""Gadgets: children of a parent that are rolled out from one template to the next, and become ready when the test says
so.
"""

from collections.abc import Sequence

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import manifests
from metaloop.devkit.testbed.cluster import ApiRefused
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import STORY_LABEL, Story
from metaloop.devkit.testbed.webhook import Behaviour

GADGETS = manifests.parent_resource("gadgets")
REVISIONS = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="controllerrevisions", kind="ControllerRevision", namespaced=True
)
READY_CHECK: JsonObject = {"type": "Ready", "status": "True"}


def gadgets_of(request: JsonObject) -> JsonObject:
    """The hook: a Gadget for each of `spec.names`, with the text of `spec.template.text`; the status counts the
    observed ones.
    """
    parent = unstructured.child_object(request, "parent")
    spec = unstructured.child_object(parent, "spec")
    names, text = spec.get("names"), unstructured.child_object(spec, "template").get("text")
    observed = unstructured.child_object(unstructured.child_object(request, "children"), f"{GADGETS.kind}.{GADGETS.api_version}")
    children: list[JsonValue] = [_gadget(str(name), parent, text) for name in names] if isinstance(names, list) else []
    return {"status": {"gadgets": len(observed)}, "children": children}


def _gadget(name: str, parent: JsonObject, text: JsonValue) -> JsonObject:
    metadata: JsonObject = {"name": name, "labels": {"parent": unstructured.name(parent)}}
    if not unstructured.namespace(parent):
        metadata["namespace"] = unstructured.text(unstructured.child_object(parent, "spec"), "namespace")
    return {"apiVersion": GADGETS.api_version, "kind": GADGETS.kind, "metadata": metadata, "spec": {"text": text}}


class Gadgets:
    """The Gadgets of one parent, in a story of its own."""

    parent = "rollout"

    def __init__(self, story: Story) -> None:
        self.story = story

    async def create(
        self,
        names: Sequence[str] = ("a", "b", "c"),
        *,
        method: str = "RollingInPlace",
        checks: Sequence[JsonObject] = (READY_CHECK,),
        field_paths: Sequence[str] = ("spec.template",),
        hook: Behaviour = gadgets_of,
        are_ready: bool = True,
        **controller: object,
    ) -> None:
        """A controller, and a parent whose Gadgets are rolled out as v1; they are ready, unless they are to have no
        status.
        """
        story = self.story
        strategy: JsonObject = {"method": method, "statusChecks": {"conditions": [*checks]}}
        rule: JsonObject = {"apiVersion": GADGETS.api_version, "resource": GADGETS.resource, "updateStrategy": strategy}
        parent: JsonObject = {
            "apiVersion": story.parents.api_version,
            "resource": story.parents.resource,
            "labelSelector": {"matchLabels": {STORY_LABEL: story.name}},
            "revisionHistory": {"fieldPaths": [*field_paths]} if field_paths else {},
        }
        await story.controller(hook, children=[rule], parentResource=parent, **controller)
        await story.parent(self.parent, names=[*names], template={"text": "v1"}, namespace=story.name)
        await self.shows(dict.fromkeys(names, "v1"))
        await self.set_ready(*names if are_ready else ())
        await self.is_rolled_out()

    async def change(self, **spec: JsonValue) -> None:
        """Set these fields of the parent's spec."""
        await self.story.change(self.parent, **spec)

    async def set_text(self, text: str) -> None:
        """Set the text of the template, which starts a rollout."""
        await self.change(template={"text": text})

    async def set_ready(self, *names: str) -> None:
        """Set the status of Gadgets as a kubelet does that of Pods: ready, with the observed generation."""
        for name in names:
            await eventually(lambda name=name: self._set_condition(name))

    async def set_unready(self, name: str) -> None:
        """Set the status of a Gadget to not ready."""
        await eventually(lambda: self._set_condition(name, "False"))

    async def _set_condition(self, name: str, ready: str = "True") -> None:
        gadget = await self.story.cluster.get(GADGETS, self.story.name, name)
        condition: JsonObject = {"type": "Ready", "status": ready}
        status: JsonObject = {"conditions": [condition], "observedGeneration": unstructured.generation(gadget)}
        try:
            await self.story.cluster.patch(GADGETS, self.story.name, name, {"status": status}, subresource="status")
        except ApiRefused as refusal:
            raise AssertionError(str(refusal)) from refusal

    async def delete(self, name: str) -> None:
        """Delete a Gadget."""
        await self.story.cluster.delete(GADGETS, self.story.name, name)

    async def delete_revision(self, text: str) -> None:
        """Delete the revision of a text."""
        for revision in await self._own_revisions():
            if _text_of(revision) == text:
                await self.story.cluster.delete(REVISIONS, unstructured.namespace(revision), unstructured.name(revision))

    async def texts(self) -> dict[str, str]:
        """The text of each Gadget that is not being deleted."""
        found = await self._all_of(GADGETS, self.story.name)
        return {
            unstructured.name(gadget): unstructured.text(unstructured.child_object(gadget, "spec"), "text")
            for gadget in found
            if not unstructured.is_deleting(gadget)
        }

    async def shows(self, texts: dict[str, str], *, within_seconds: float = 30.0) -> None:
        """Wait until these are the Gadgets and their texts."""

        async def check() -> None:
            found = await self.texts()
            expect(found == texts, f"texts are {found}, not {texts}; the condition is {await self.condition()}")

        await eventually(check, within_seconds=within_seconds)

    async def has_text(self, name: str, text: str) -> None:
        """Wait until a Gadget has a text."""

        async def check() -> None:
            found = await self.texts()
            expect(found.get(name) == text, f"texts are {found}, that of {name} is not yet {text}")

        await eventually(check)

    async def some_have(self, text: str, *, at_least: int) -> None:
        """Raise AssertionError unless so many Gadgets have a text."""
        found = await self.texts()
        expect([*found.values()].count(text) >= at_least, f"texts are {found}")

    async def has_condition(self, status: str, reason: str, message: str = "") -> None:
        """Wait until the parent's condition Updated has this status, reason and message."""

        async def check() -> None:
            found = await self.condition()
            said = (found.get("status"), found.get("reason"))
            expect(said == (status, reason) and message in unstructured.text(found, "message"), f"the condition is {found}")

        await eventually(check)

    async def condition(self) -> JsonObject:
        """The parent's condition Updated."""
        conditions = (await self.story.status(self.parent)).get("conditions")
        found = (
            [each for each in conditions if isinstance(each, dict) and each.get("type") == "Updated"]
            if isinstance(conditions, list)
            else []
        )
        assert len(found) <= 1
        return found[0] if found else {}

    async def waits_for(self, name: str, why: str = "") -> None:
        """Wait until the parent's condition says that the rollout waits for a Gadget."""
        await self.has_condition("False", "RolloutWaiting", f"Gadget {name} {why}".strip())

    async def are_rested(self) -> None:
        """Raise AssertionError unless the status counts all Gadgets, and the last call of the hook showed all of it."""
        status, texts = await self.story.status(self.parent), await self.texts()
        expect(status.get("gadgets") == len(texts), f"the status is {status}")
        await self.story.last_call_shows(self.parent, kind=GADGETS)

    async def is_rolled_out(self, *, text: str = "v1", within_seconds: float = 30.0) -> None:
        """Wait until the rollout of a text is complete, and all Gadgets are of its one revision."""

        async def check() -> None:
            texts, condition, found = await self.texts(), await self.condition(), await self.revisions()
            expect({*texts.values()} == {text}, f"texts are {texts}, not only {text}")
            expect(condition.get("reason") == "OnLatestRevision", f"the condition is {condition}")
            expect([*found] == [text], f"revisions are {found}, not only {text}")
            expect(sorted(found[text]) == sorted(texts), f"only {found[text]} are of revision {text}")

        await eventually(check, within_seconds=within_seconds)

    async def revisions(self) -> dict[str, list[str]]:
        """The Gadgets of each revision, by its text."""
        return {_text_of(each): _gadgets_of(each) for each in await self._own_revisions()}

    async def has_no_revisions(self) -> None:
        """Raise AssertionError if there are any."""
        expect(not await self._own_revisions(), "there are still revisions")

    async def _own_revisions(self) -> list[JsonObject]:
        is_namespaced = self.story.parents.namespaced
        listed = await self._all_of(REVISIONS, self.story.name if is_namespaced else "default")
        return [each for each in listed if is_namespaced or _owner_of(each) == self.parent]

    async def _all_of(self, resource: ResourceInfo, namespace: str) -> list[JsonObject]:
        """All objects of a kind; raises AssertionError while the API server does not serve the kind yet."""
        try:
            return await self.story.cluster.list(resource, namespace)
        except ApiRefused as refusal:
            raise AssertionError(str(refusal)) from refusal


def _text_of(revision: JsonObject) -> str:
    spec = unstructured.child_object(unstructured.child_object(revision, "parentPatch"), "spec")
    return unstructured.text(unstructured.child_object(spec, "template"), "text")


def _gadgets_of(revision: JsonObject) -> list[str]:
    groups = revision.get("children")
    names = [group.get("names") for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    return [str(name).rpartition("/")[2] for listed in names if isinstance(listed, list) for name in listed]


def _owner_of(obj: JsonObject) -> str:
    references = unstructured.metadata(obj).get("ownerReferences")
    return unstructured.text(references[0], "name") if isinstance(references, list) and isinstance(references[0], dict) else ""
