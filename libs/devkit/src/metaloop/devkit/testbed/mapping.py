"""A MapController of a story: for each ConfigMap with the story's input label, the ConfigMaps that a hook answers."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from metaloop.common.api import MAP_CONTROLLER_ANNOTATION, MAP_KEY
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, MAPS
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.manifests import HOOK_TIMEOUT, child_rule, config_map
from metaloop.devkit.testbed.story import STORY_LABEL, Story
from metaloop.devkit.testbed.webhook import Behaviour, Call

INPUT_LABEL = "input"


def copying(*suffixes: str, **answer: object) -> Behaviour:
    """A map hook with one output for each suffix: a ConfigMap with the data of the input.

    `answer` adds fields to its answer.
    """

    def behave(request: JsonObject) -> JsonObject:
        return {"outputs": [output(request, suffix) for suffix in suffixes], **answer}  # type: ignore[dict-item]

    return behave


def output(request: JsonObject, suffix: str) -> JsonObject:
    """One such ConfigMap; that of a cluster-scoped parent is in the namespace of its input."""
    source = unstructured.child_object(request, "input")
    name = f"{unstructured.name(source)}-{unstructured.name(unstructured.child_object(request, 'parent'))}-{suffix}"
    return config_map(name, data=unstructured.strings(source.get("data")), namespace=unstructured.namespace(source))


def keeping_all(request: JsonObject) -> JsonObject:
    """A tombstone hook that keeps all outputs."""
    groups = unstructured.child_object(request, "outputs").values()
    return {"outputs": [obj for group in groups if isinstance(group, dict) for obj in group.values()]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapped:
    """One MapController, and the hands of those who use it."""

    story: Story
    name: str

    async def install(self, behaviour: Behaviour, **spec: object) -> None:
        """Create it for the story's parents. By default, it maps ConfigMaps to ConfigMaps, updated in place."""
        await self.story.cluster.create(MAPS, self.manifest(behaviour, **spec))

    def manifest(self, behaviour: Behaviour, **spec: object) -> JsonObject:
        """The manifest that `install` creates; `spec` adds or overrides fields."""
        parents = self.story.parents
        selector: JsonObject = {"matchLabels": {STORY_LABEL: self.story.name}}
        own: JsonObject = {
            "parentResource": {"apiVersion": parents.api_version, "resource": parents.resource, "labelSelector": selector},
            "inputResources": [{"apiVersion": CONFIG_MAPS.api_version, "resource": CONFIG_MAPS.resource}],
            "outputResources": [child_rule()],
            "hooks": {"map": self.hook("map", behaviour)},
        }
        metadata: JsonObject = {"name": self.name, "labels": {STORY_LABEL: self.story.name, **self.story.lab.labels}}
        return {"apiVersion": MAPS.api_version, "kind": MAPS.kind, "metadata": metadata, "spec": {**own, **spec}}  # type: ignore[dict-item]

    def hook(self, name: str, behaviour: Behaviour, *, version: str = "v1") -> JsonObject:
        """The spec of a hook with this behaviour and wire version."""
        url = self.story.lab.webhook.on(self._hook_name(name), behaviour)
        return {"version": version, "webhook": {"url": url, "timeout": HOOK_TIMEOUT}}

    # -- parents and inputs --------------------------------------------------------------------------------------------

    async def parent(self, name: str = "p", *, match: Mapping[str, str] | None = None, **spec: object) -> JsonObject:
        """Create a parent that selects ConfigMaps with these labels, by default with the label `input: yes`."""
        labels = {INPUT_LABEL: "yes"} if match is None else dict(match)
        body: JsonObject = {"selector": {"matchLabels": {**labels}}, **spec}  # type: ignore[dict-item]
        metadata: JsonObject = {"name": name, "labels": {STORY_LABEL: self.story.name}}
        obj: JsonObject = {**_type_of(self.story.parents), "metadata": metadata, "spec": body}
        return await self.story.cluster.create(self.story.parents, obj, namespace=self.story.name)

    async def select(self, name: str, **labels: str) -> None:
        """Have a parent select ConfigMaps with these labels instead."""
        selector: JsonObject = {"matchLabels": {INPUT_LABEL: None, **labels}}
        await self.story.cluster.patch(self.story.parents, self.story.name, name, {"spec": {"selector": selector}})

    async def input(self, name: str, *, text: str = "", labels: Mapping[str, str] | None = None, namespace: str = "") -> JsonObject:
        """Create a ConfigMap with this text, by default with the label `input: yes`."""
        obj = config_map(name, labels={INPUT_LABEL: "yes"} if labels is None else labels, data={"text": text})
        return await self.story.cluster.create(CONFIG_MAPS, obj, namespace=namespace or self.story.name)

    async def relabel(self, name: str, value: str | None) -> None:
        """Set the label `input` of a ConfigMap; None removes it."""
        await self.story.cluster.patch(CONFIG_MAPS, self.story.name, name, {"metadata": {"labels": {INPUT_LABEL: value}}})

    async def status(self, name: str = "p") -> JsonObject:
        """The status of a parent."""
        found = await self.story.cluster.get(self.story.parents, self.story.name, name)
        return unstructured.child_object(found, "status")

    async def ready(self, status: str, *, of: str = "p") -> None:
        """Raise AssertionError unless the condition Ready of a parent has this status."""
        conditions = unstructured.child_objects(await self.status(of), "conditions")
        found = [each.get("status") for each in conditions if each.get("type") == "Ready"]
        expect(found == [status], f"Ready of {of} is {found}, not {status}: {conditions}")

    # -- outputs -------------------------------------------------------------------------------------------------------

    async def outputs(self, *, namespace: str = "") -> dict[str, JsonObject]:
        """The ConfigMaps of a namespace, by default the story's, whose annotation names the controller."""
        listed = await self.story.cluster.list(CONFIG_MAPS, namespace or self.story.name)
        return {
            unstructured.name(item): item for item in listed if unstructured.annotations(item).get(MAP_CONTROLLER_ANNOTATION) == self.name
        }

    async def has(self, texts: Mapping[str, str], *, namespace: str = "") -> None:
        """Raise AssertionError unless its outputs have these names and texts."""
        found = {
            name: unstructured.text(unstructured.child_object(item, "data"), "text")
            for name, item in (await self.outputs(namespace=namespace)).items()
        }
        expect(found == dict(texts), f"the outputs of {self.name} are {found}, not yet {dict(texts)}")

    async def counts(self, *, inputs: int, outputs: int, of: str = "p") -> None:
        """Raise AssertionError unless the status of a parent counts so many ConfigMaps."""
        status = await self.status(of)
        found = [
            unstructured.child_object(unstructured.child_object(status, key), "configmaps").get("total") for key in ("inputs", "outputs")
        ]
        expect(found == [inputs, outputs], f"the status counts {found}: {status}")

    async def rested(self) -> None:
        """Raise AssertionError unless each input that has outputs was asked about, and all calls are answered.

        Until something changes, no hook is called again: outputs that an answer created or updated are no news.
        """
        made_for = {unstructured.labels(output).get(MAP_KEY, "") for output in (await self.outputs()).values()}
        calls = self.calls()
        missing = made_for - {unstructured.text(call.request, "mapKey") for call in calls}
        expect(not missing, f"no call about {sorted(missing)} has come yet")
        expect(all(call.ended_at is not None for call in calls), "a call is under way")

    # -- calls ---------------------------------------------------------------------------------------------------------

    def calls(self, hook: str = "map", *, of: str = "") -> list[Call]:
        """The calls of a hook so far, or those for one parent."""
        return self.story.lab.webhook.calls(self._hook_name(hook), parent=of)

    def asked_about(self, hook: str = "map") -> Sequence[str]:
        """The names of the inputs that a hook was asked about, in order."""
        return [unstructured.name(unstructured.child_object(call.request, "input")) for call in self.calls(hook)]

    async def called(self, times: int, hook: str = "map", *, of: str = "") -> None:
        """Raise AssertionError unless a hook was called at least this many times."""
        await self.story.lab.webhook.called(times, self._hook_name(hook), parent=of)

    def no_more_than(self, times: int, hook: str = "map", *, of: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was called at most this many times."""
        return self.story.lab.webhook.no_more_than(times, self._hook_name(hook), parent=of)

    def _hook_name(self, hook: str) -> str:
        return f"{self.name}-mapping-{hook}"


def _type_of(resource: ResourceInfo) -> JsonObject:
    return {"apiVersion": resource.api_version, "kind": resource.kind}
