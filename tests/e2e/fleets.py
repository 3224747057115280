"""Fleets: parents whose Gadgets roll from one template to the next, and the test that plays their kubelet."""

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
    """The hook: a Gadget for each of `spec.names`, saying `spec.template.text`; the status counts those that are there."""
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


class Fleet:
    """A parent called `fleet` with its Gadgets, in a story of its own."""

    name = "fleet"

    def __init__(self, story: Story) -> None:
        self.story = story

    async def launch(
        self,
        names: Sequence[str] = ("a", "b", "c"),
        *,
        method: str = "RollingInPlace",
        checks: Sequence[JsonObject] = (READY_CHECK,),
        field_paths: Sequence[str] = ("spec.template",),
        hook: Behaviour = gadgets_of,
        is_healed: bool = True,
        **controller: object,
    ) -> None:
        """A controller and a fleet of v1, at rest: all Gadgets there and, unless they are to have no status, well."""
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
        await story.parent(self.name, names=[*names], template={"text": "v1"}, namespace=story.name)
        await self.shows(dict.fromkeys(names, "v1"))
        await self.heal(*names if is_healed else ())
        await self.is_rolled_out()

    async def change(self, **spec: JsonValue) -> None:
        """The parent's spec has these fields."""
        await self.story.change(self.name, **spec)

    async def say(self, text: str) -> None:
        """The template says another text: what is rolled out."""
        await self.change(template={"text": text})

    async def heal(self, *names: str) -> None:
        """What the kubelet does of Pods: each becomes ready, and says of which generation it knows."""
        for name in names:
            await eventually(lambda name=name: self._set_ready(name))

    async def break_(self, name: str) -> None:
        """A Gadget is not ready."""
        await eventually(lambda: self._set_ready(name, "False"))

    async def _set_ready(self, name: str, ready: str = "True") -> None:
        gadget = await self.story.cluster.get(GADGETS, self.story.name, name)
        condition: JsonObject = {"type": "Ready", "status": ready}
        status: JsonObject = {"conditions": [condition], "observedGeneration": unstructured.generation(gadget)}
        try:
            await self.story.cluster.patch(GADGETS, self.story.name, name, {"status": status}, subresource="status")
        except ApiRefused as refusal:
            raise AssertionError(str(refusal)) from refusal

    async def delete(self, name: str) -> None:
        """Somebody deletes a Gadget."""
        await self.story.cluster.delete(GADGETS, self.story.name, name)

    async def delete_revision(self, text: str) -> None:
        """Somebody deletes the revision of a text."""
        for revision in await self._own_revisions():
            if _text_of(revision) == text:
                await self.story.cluster.delete(REVISIONS, unstructured.namespace(revision), unstructured.name(revision))

    async def texts(self) -> dict[str, str]:
        """What each Gadget says."""
        found = await self._all_of(GADGETS, self.story.name)
        return {
            unstructured.name(gadget): unstructured.text(unstructured.child_object(gadget, "spec"), "text")
            for gadget in found
            if not unstructured.is_deleting(gadget)
        }

    async def shows(self, texts: dict[str, str], *, within_seconds: float = 15.0) -> None:
        """Waits until there are these Gadgets with these texts."""

        async def check() -> None:
            found = await self.texts()
            expect(found == texts, f"Gadgets say {found}, not {texts}; the parent tells {await self.condition()}")

        await eventually(check, within_seconds=within_seconds)

    async def waits_until(self, name: str, *, says: str) -> None:
        """Waits until a Gadget says this."""

        async def check() -> None:
            found = await self.texts()
            expect(found.get(name) == says, f"Gadgets say {found}, {name} not yet {says}")

        await eventually(check)

    async def has_said(self, text: str, *, at_least: int) -> None:
        """Raises AssertionError until so many Gadgets say this."""
        found = await self.texts()
        expect([*found.values()].count(text) >= at_least, f"Gadgets say {found}")

    async def tells(self, status: str, reason: str, message: str = "") -> None:
        """Waits until the parent's condition Updated says this."""

        async def check() -> None:
            found = await self.condition()
            said = (found.get("status"), found.get("reason"))
            expect(said == (status, reason) and message in unstructured.text(found, "message"), f"the parent tells {found}")

        await eventually(check)

    async def condition(self) -> JsonObject:
        """The parent's condition Updated."""
        conditions = (await self.story.status(self.name)).get("conditions")
        found = (
            [each for each in conditions if isinstance(each, dict) and each.get("type") == "Updated"]
            if isinstance(conditions, list)
            else []
        )
        assert len(found) <= 1
        return found[0] if found else {}

    async def waits_for(self, name: str, why: str = "") -> None:
        """Waits until the rollout waits for a Gadget."""
        await self.tells("False", "RolloutWaiting", f"Gadget {name} {why}".strip())

    async def is_rolled_out(self, *, text: str = "v1", within_seconds: float = 15.0) -> None:
        """Waits until the rollout of a text is over, with one revision left that every Gadget follows."""

        async def check() -> None:
            texts, condition, found = await self.texts(), await self.condition(), await self.revisions()
            expect({*texts.values()} == {text}, f"Gadgets say {texts}, not only {text}")
            expect(condition.get("reason") == "OnLatestRevision", f"the parent tells {condition}")
            expect([*found] == [text], f"there are revisions {found}, not only {text}")
            expect(sorted(found[text]) == sorted(texts), f"of the Gadgets {found[text]} follow {text}")

        await eventually(check, within_seconds=within_seconds)

    async def revisions(self) -> dict[str, list[str]]:
        """Who follows each revision, by the text that it is of."""
        return {_text_of(each): _followers_of(each) for each in await self._own_revisions()}

    async def has_no_revisions(self) -> None:
        """Raises AssertionError until there are none."""
        expect(not await self._own_revisions(), "there are still revisions")

    async def _own_revisions(self) -> list[JsonObject]:
        is_namespaced = self.story.parents.namespaced
        listed = await self._all_of(REVISIONS, self.story.name if is_namespaced else "default")
        return [each for each in listed if is_namespaced or _owner_of(each) == self.name]

    async def _all_of(self, resource: ResourceInfo, namespace: str) -> list[JsonObject]:
        """Its objects; AssertionError where the API server isn't ready to tell, as of a kind that has just come."""
        try:
            return await self.story.cluster.list(resource, namespace)
        except ApiRefused as refusal:
            raise AssertionError(str(refusal)) from refusal


def _text_of(revision: JsonObject) -> str:
    spec = unstructured.child_object(unstructured.child_object(revision, "parentPatch"), "spec")
    return unstructured.text(unstructured.child_object(spec, "template"), "text")


def _followers_of(revision: JsonObject) -> list[str]:
    groups = revision.get("children")
    names = [group.get("names") for group in groups if isinstance(group, dict)] if isinstance(groups, list) else []
    return [str(name).rpartition("/")[2] for listed in names if isinstance(listed, list) for name in listed]


def _owner_of(obj: JsonObject) -> str:
    references = unstructured.metadata(obj).get("ownerReferences")
    return unstructured.text(references[0], "name") if isinstance(references, list) and isinstance(references[0], dict) else ""
