"""A DecoratorController of a story: what it decorates bears the story's label, and what it attaches lies in the story's namespace."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, DECORATORS
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.manifests import child_rule, config_map
from metaloop.devkit.testbed.story import STORY_LABEL, Story
from metaloop.devkit.testbed.webhook import Behaviour, Call


def attaching(*suffixes: str, **answer: object) -> Behaviour:
    """Hooks attach a ConfigMap for each suffix, named after the object, with what the object's annotation `text` says; and answer the rest as given."""

    def behave(request: JsonObject) -> JsonObject:
        return {"attachments": [attachment(request, suffix) for suffix in suffixes], **answer}  # type: ignore[dict-item]

    return behave


def attachment(request: JsonObject, suffix: str) -> JsonObject:
    """One such ConfigMap: of a cluster-scoped object, in the namespace that its annotation `home` names."""
    obj = unstructured.child_object(request, "object")
    annotations = unstructured.annotations(obj)
    name = f"{unstructured.kind(obj).lower()}-{unstructured.name(obj)}-{suffix}"
    return config_map(name, data={"text": annotations.get("text", "")}, namespace=annotations.get("home", ""))


def done_when_nothing_is_attached(request: JsonObject) -> JsonObject:
    """A finalize hook's answer: nothing is to be attached any more, and all is done once nothing is."""
    groups = unstructured.child_object(request, "attachments").values()
    return {"attachments": [], "finalized": not any(groups)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decorator:
    """One DecoratorController, which may have the name of the story's CompositeController."""

    story: Story
    name: str

    async def install(
        self, behaviour: Behaviour, *targets: ResourceInfo, attachments: Sequence[JsonObject] | None = None, **spec: object
    ) -> None:
        """Have it decorate the story's objects of some kinds, with ConfigMaps that are updated in place unless told otherwise."""
        await self.story.cluster.create(DECORATORS, self.manifest(behaviour, *targets, attachments=attachments, **spec))

    def manifest(
        self, behaviour: Behaviour, *targets: ResourceInfo, attachments: Sequence[JsonObject] | None = None, **spec: object
    ) -> JsonObject:
        """What `install` creates; fields of `spec` override its own."""
        own: JsonObject = {
            "resources": [self.rule(target) for target in targets],
            "attachments": [child_rule()] if attachments is None else list(attachments),
            "hooks": {"sync": self.hook("sync", behaviour)},
        }
        metadata: JsonObject = {"name": self.name, "labels": {STORY_LABEL: self.story.name}}
        return {
            "apiVersion": DECORATORS.api_version,
            "kind": DECORATORS.kind,
            "metadata": metadata,
            "spec": {**own, **spec},  # type: ignore[dict-item]
        }

    def rule(self, target: ResourceInfo, **fields: object) -> JsonObject:
        """A rule for the story's objects of one kind, with further fields, or others in place of these."""
        selector: JsonObject = {"matchLabels": {STORY_LABEL: self.story.name}}
        return {"apiVersion": target.api_version, "resource": target.resource, "labelSelector": selector, **fields}  # type: ignore[dict-item]

    def hook(self, name: str, behaviour: Behaviour, *, version: str = "v1") -> JsonObject:
        """A hook that behaves so, of a wire version."""
        url = self.story.lab.webhook.on(self._hook_name(name), behaviour)
        return {"version": version, "webhook": {"url": url, "timeout": "5s"}}

    def calls(self, hook: str = "sync", *, of: str = "") -> list[Call]:
        """The calls of a hook so far, or those about one object."""
        return self.story.lab.webhook.calls(self._hook_name(hook), parent=of)

    async def called(self, times: int, hook: str = "sync", *, of: str = "") -> None:
        """Raises AssertionError until a hook was called so often."""
        await self.story.lab.webhook.called(times, self._hook_name(hook), parent=of)

    def no_more_than(self, times: int, hook: str = "sync", *, of: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was not called more often than that."""
        return self.story.lab.webhook.no_more_than(times, self._hook_name(hook), parent=of)

    async def attached(self, texts: Mapping[str, str]) -> None:
        """Raises AssertionError until what it attached in the story's namespace are these ConfigMaps, with these texts."""
        found = {
            name: unstructured.text(unstructured.child_object(item, "data"), "text") for name, item in (await self.attachments()).items()
        }
        expect(found == dict(texts), f"{self.name} has attached {found}, not yet {dict(texts)}")

    async def attachments(self) -> dict[str, JsonObject]:
        """The ConfigMaps of the story's namespace that are its by their annotation."""
        listed = await self.story.cluster.list(CONFIG_MAPS, self.story.name)
        marked = "metacontroller.k8s.io/decorator-controller"
        return {unstructured.name(item): item for item in listed if unstructured.annotations(item).get(marked) == self.name}

    def _hook_name(self, hook: str) -> str:
        return f"{self.name}-decorator-{hook}"
