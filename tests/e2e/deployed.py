"""A ComponentController in a story, the hands of those who use it, and the manifests that its hook answers."""

from collections.abc import Sequence
from dataclasses import dataclass

from metaloop.common.json import JsonObject, JsonValue, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import COMPONENTS, CONFIG_MAPS
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import STORY_LABEL, Story
from metaloop.devkit.testbed.webhook import Behaviour, Call

PREFIX = "components.example.com"
PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True, has_status=True)
DEPLOYMENTS = ResourceInfo(api_version="apps/v1", resource="deployments", kind="Deployment", namespaced=True, has_status=True)


def annotated(obj: JsonObject, **settings: str) -> JsonObject:
    """`obj` with these settings as annotations: `apply_order="1"`."""
    annotations: JsonObject = {f"{PREFIX}/{name.replace('_', '-')}": value for name, value in settings.items()}
    return {**obj, "metadata": {**unstructured.metadata(obj), "annotations": annotations}}


def deployment(name: str, **settings: str) -> JsonObject:
    """A Deployment of one pod, which nothing here runs."""
    labels: JsonObject = {"app": name}
    pod: JsonObject = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "example.com/main:1"}]}}
    spec: JsonObject = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return annotated({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}, **settings)


def namespace(name: str) -> JsonObject:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def answering(*children: JsonObject, **answer: JsonValue) -> Behaviour:
    """A hook that answers these objects."""
    return lambda _: {"children": [*children], **answer}


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """One ComponentController, and the hands of those who use it."""

    story: Story

    @property
    def name(self) -> str:
        """The name of the controller and of the namespace."""
        return self.story.name

    async def install(self, behaviour: Behaviour, **spec: JsonValue) -> None:
        """Create it for the story's parents, with this in its spec."""
        parents = self.story.parents
        selector: JsonObject = {"matchLabels": {STORY_LABEL: self.name}}
        own: JsonObject = {
            "prefix": PREFIX,
            "parentResource": {"apiVersion": parents.api_version, "resource": parents.resource, "labelSelector": selector},
            "generator": self.story.hook("generate", behaviour),
        }
        metadata: JsonObject = {"name": self.name, "labels": {STORY_LABEL: self.name}}
        manifest: JsonObject = {
            "apiVersion": COMPONENTS.api_version,
            "kind": COMPONENTS.kind,
            "metadata": metadata,
            "spec": {**own, **spec},
        }
        await self.story.cluster.create(COMPONENTS, manifest)

    async def status(self, name: str = "app") -> JsonObject:
        """The status of a component."""
        return unstructured.child_object(await self.story.cluster.get(self.story.parents, self.name, name), "status")

    async def is_in_state(self, state: str, *, reason: str = "", containing: str = "") -> JsonObject:
        """The status of the component. Raises AssertionError unless it is in this state, for this reason."""
        status = await self.status()
        ready = next((each for each in unstructured.child_objects(status, "conditions") if each.get("type") == "Ready"), {})
        expect(status.get("state") == state, f"state {status.get('state')}, not {state}: {ready}")
        expect(ready.get("reason") == (reason or ready.get("reason")), f"{ready}, not {reason}")
        expect(containing in str(ready.get("message")), f"{ready} does not say {containing!r}")
        return status

    async def phases(self) -> dict[str, str]:
        """The phases of the items in the inventory, by kind and name."""
        items = unstructured.child_objects(await self.status(), "inventory")
        return {f"{item['kind']} {item['name']}": str(item["phase"]) for item in items}

    async def has(self, phases: dict[str, str]) -> None:
        """Raise AssertionError unless the inventory has these phases."""
        found = await self.phases()
        expect(found == phases, f"the inventory is {found}, not {phases}")

    async def lists(self, *names: str) -> None:
        """Raise AssertionError unless the ConfigMaps with the inventory list these objects, and there are no others."""
        named = (await self.status()).get("inventoryConfigMaps")
        found = await self.story.cluster.list(CONFIG_MAPS, self.name, labels=f"{PREFIX}/owner-id")
        pieces = {unstructured.name(each): each for each in found if "-inventory-" in unstructured.name(each)}
        expect([*pieces] == named, f"the status names {named}, and there are {[*pieces]}")
        rows = [row for each in pieces.values() for row in loads(str(unstructured.child_object(each, "data")["inventory"]))]
        expect([row["name"] for row in rows] == [*names], f"the inventory is {rows}")

    async def exists(self, resource: ResourceInfo, name: str, *, within: str = "") -> JsonObject:
        """The object. Raises AssertionError if it does not exist."""
        found = await self.story.cluster.find(resource, within or self.name, name)
        expect(found is not None, f"there is no {resource.kind} {name}")
        return found or {}

    async def is_gone(self, resource: ResourceInfo, name: str, *, within: str = "") -> None:
        """Raise AssertionError if the object exists."""
        found = await self.story.cluster.find(resource, within or self.name, name)
        expect(found is None, f"{resource.kind} {name} still exists")

    async def becomes_available(self, name: str, *, within: str = "") -> None:
        """Have the pods of a Deployment report that they are ready, as a kubelet would."""

        async def pods() -> list[JsonObject]:
            found = await self.story.cluster.list(PODS, within or self.name, labels=f"app={name}")
            expect(found, f"Deployment {name} has no pods yet")
            return found

        status: JsonObject = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        for pod in await eventually(pods):
            await self.story.cluster.patch(PODS, within or self.name, unstructured.name(pod), {"status": status}, subresource="status")

    async def delete(self, name: str = "app") -> None:
        """Delete a component."""
        await self.story.cluster.delete(self.story.parents, self.name, name)

    def calls(self, hook: str = "generate") -> Sequence[Call]:
        """The calls of a hook so far."""
        return self.story.calls(hook)
