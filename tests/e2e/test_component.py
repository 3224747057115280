"""ComponentControllers: what a hook answers is applied, listed in the status, and removed, in order."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import COMPONENTS, CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.manifests import config_map
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
        """Create it for the story's parents."""
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

    def calls(self) -> Sequence[Call]:
        """The calls of the hook so far."""
        return self.story.calls("generate")


@pytest.fixture
def deployed(story: Story) -> Deployed:
    return Deployed(story=story)


async def test_component_is_applied_in_waves_and_removed_in_order(deployed: Deployed) -> None:
    within = f"{deployed.name}-app"
    settings: JsonObject = {**config_map("settings", data={"a": "b"}, namespace=within)}
    web = deployment("web", apply_order="1", delete_order="-1")
    web["metadata"] = {**unstructured.metadata(web), "namespace": within}
    await deployed.install(answering(web, settings, namespace(within), status={"url": "http://web"}))

    await deployed.story.parent("app")

    await eventually(lambda: deployed.exists(DEPLOYMENTS, "web", within=within))
    waiting = await eventually(lambda: deployed.is_in_state("Processing", reason="Processing", containing="Deployment"))
    assert waiting["url"] == "http://web"
    await deployed.has({f"Namespace {within}": "Ready", "ConfigMap settings": "Ready", "Deployment web": "Creating"})
    found = await deployed.exists(CONFIG_MAPS, "settings", within=within)
    assert f"{PREFIX}/owner-id" in unstructured.labels(found)
    assert "ownerReferences" not in unstructured.metadata(found)

    await deployed.becomes_available("web", within=within)
    await eventually(lambda: deployed.is_in_state("Ready", reason="Ready"))
    await deployed.has({f"Namespace {within}": "Ready", "ConfigMap settings": "Ready", "Deployment web": "Ready"})

    await deployed.delete()
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))
    await deployed.is_gone(CONFIG_MAPS, "settings", within=within)
    await deployed.is_gone(DEPLOYMENTS, "web", within=within)
    await deployed.is_gone(NAMESPACES, within)


async def test_component_at_rest_is_neither_asked_about_nor_written(deployed: Deployed) -> None:
    await deployed.install(answering(*(config_map(name, data={"a": name}) for name in "abc")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))
    # A pass that the echoes of the first one cause may still be under way.
    await steadily(deployed.story.no_more_than(len(deployed.calls()) + 1, "generate"), for_seconds=1.0)
    calls, mark = len(deployed.calls()), deployed.story.lab.audit.mark()

    await steadily(deployed.story.no_more_than(calls, "generate"), for_seconds=1.0)

    assert await deployed.story.writes_since(mark) == []


async def test_changed_object_is_written_back_at_once(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a", data={"k": "v"})))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    await deployed.story.cluster.patch(CONFIG_MAPS, deployed.name, "a", {"data": {"k": "w"}})

    async def is_back() -> None:
        found = await deployed.exists(CONFIG_MAPS, "a")
        expect(found["data"] == {"k": "v"}, f"the data are {found['data']}")

    await eventually(is_back)


async def test_object_that_is_no_longer_desired_is_deleted(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a"), config_map("b")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    deployed.story.now_answers(answering(config_map("b")), "generate")
    await deployed.story.change("app", text="changed")

    await eventually(lambda: deployed.is_gone(CONFIG_MAPS, "a"))
    await eventually(lambda: deployed.has({"ConfigMap b": "Ready"}))


async def test_invalid_object_touches_nothing(deployed: Deployed) -> None:
    await deployed.install(answering(config_map("a"), annotated(config_map("b"), apply_order="soon")))
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Error", reason="InvalidAnswer", containing="apply-order"))

    assert await deployed.phases() == {}
    await deployed.is_gone(CONFIG_MAPS, "a")


async def test_object_of_somebody_else_is_not_taken_over(deployed: Deployed) -> None:
    await deployed.story.cluster.create(CONFIG_MAPS, config_map("a", data={"whose": "mine"}), namespace=deployed.name)
    await deployed.install(answering(config_map("a", data={"whose": "theirs"})), policies={"adoption": "Never"})
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Error", reason="NameTaken", containing="its adoption policy is Never"))

    assert (await deployed.exists(CONFIG_MAPS, "a"))["data"] == {"whose": "mine"}


async def test_object_of_nobody_is_adopted(deployed: Deployed) -> None:
    await deployed.story.cluster.create(CONFIG_MAPS, config_map("a", data={"whose": "nobody's"}), namespace=deployed.name)
    await deployed.install(answering(config_map("a", data={"whose": "ours"})))
    await deployed.story.parent("app")

    await eventually(lambda: deployed.is_in_state("Ready"))

    assert (await deployed.exists(CONFIG_MAPS, "a"))["data"] == {"whose": "ours"}


async def test_orphaned_object_stays_when_its_component_goes(deployed: Deployed) -> None:
    await deployed.install(answering(annotated(config_map("a"), delete_policy="orphan-on-delete"), config_map("b")))
    await deployed.story.parent("app")
    await eventually(lambda: deployed.is_in_state("Ready"))

    await deployed.delete()
    await eventually(lambda: deployed.is_gone(deployed.story.parents, "app"))

    await deployed.is_gone(CONFIG_MAPS, "b")
    await deployed.exists(CONFIG_MAPS, "a")
