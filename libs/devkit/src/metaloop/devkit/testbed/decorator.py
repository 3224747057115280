"""A DecoratorController of a story, for objects with the story's label."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, DECORATORS
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.manifests import HOOK_TIMEOUT, child_rule, config_map
from metaloop.devkit.testbed.story import STORY_LABEL, Story
from metaloop.devkit.testbed.webhook import Behaviour, Call, expect_last_call_shows


def attaching(*suffixes: str, **answer: object) -> Behaviour:
    """A hook that attaches a ConfigMap for each suffix, with the text of the object's annotation `text`.

    `answer` adds fields to its answer.
    """

    def behave(request: JsonObject) -> JsonObject:
        return {"attachments": [attachment(request, suffix) for suffix in suffixes], **answer}  # type: ignore[dict-item]

    return behave


def attachment(request: JsonObject, suffix: str) -> JsonObject:
    """One such ConfigMap; that of a cluster-scoped object is in the namespace that the annotation `home` names."""
    obj = unstructured.child_object(request, "object")
    annotations = unstructured.annotations(obj)
    name = f"{unstructured.kind(obj).lower()}-{unstructured.name(obj)}-{suffix}"
    return config_map(name, data={"text": annotations.get("text", "")}, namespace=annotations.get("home", ""))


def done_when_nothing_is_attached(request: JsonObject) -> JsonObject:
    """A finalize hook: it wants no attachments, and is finalized when there are none."""
    groups = unstructured.child_object(request, "attachments").values()
    return {"attachments": [], "finalized": not any(groups)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decorator:
    """One DecoratorController; it may have the same name as the story's CompositeController."""

    story: Story
    name: str

    async def install(
        self, behaviour: Behaviour, *targets: ResourceInfo, attachments: Sequence[JsonObject] | None = None, **spec: object
    ) -> None:
        """Create it for the story's objects of some kinds.

        By default, its attachments are ConfigMaps that are updated in place.
        """
        await self.story.cluster.create(DECORATORS, self.manifest(behaviour, *targets, attachments=attachments, **spec))

    def manifest(
        self, behaviour: Behaviour, *targets: ResourceInfo, attachments: Sequence[JsonObject] | None = None, **spec: object
    ) -> JsonObject:
        """The manifest that `install` creates; `spec` adds or overrides fields."""
        own: JsonObject = {
            "resources": [self.rule(target) for target in targets],
            "attachments": [child_rule()] if attachments is None else list(attachments),
            "hooks": {"sync": self.hook("sync", behaviour)},
        }
        metadata: JsonObject = {"name": self.name, "labels": {STORY_LABEL: self.story.name, **self.story.lab.labels}}
        return {
            "apiVersion": DECORATORS.api_version,
            "kind": DECORATORS.kind,
            "metadata": metadata,
            "spec": {**own, **spec},  # type: ignore[dict-item]
        }

    def rule(self, target: ResourceInfo, **fields: object) -> JsonObject:
        """A rule for the story's objects of one kind; `fields` adds or overrides fields."""
        selector: JsonObject = {"matchLabels": {STORY_LABEL: self.story.name}}
        return {"apiVersion": target.api_version, "resource": target.resource, "labelSelector": selector, **fields}  # type: ignore[dict-item]

    def hook(self, name: str, behaviour: Behaviour, *, version: str = "v1") -> JsonObject:
        """The spec of a hook with this behaviour and wire version."""
        url = self.story.lab.webhook.on(self._hook_name(name), behaviour)
        return {"version": version, "webhook": {"url": url, "timeout": HOOK_TIMEOUT}}

    def calls(self, hook: str = "sync", *, of: str = "") -> list[Call]:
        """The calls of a hook so far, or those for one object."""
        return self.story.lab.webhook.calls(self._hook_name(hook), parent=of)

    async def called(self, times: int, hook: str = "sync", *, of: str = "") -> None:
        """Raise AssertionError unless a hook was called at least this many times."""
        await self.story.lab.webhook.called(times, self._hook_name(hook), parent=of)

    def no_more_than(self, times: int, hook: str = "sync", *, of: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was called at most this many times."""
        return self.story.lab.webhook.no_more_than(times, self._hook_name(hook), parent=of)

    async def attached(self, texts: Mapping[str, str]) -> None:
        """Raise AssertionError unless these ConfigMaps with these texts are its attachments."""
        found = {
            name: unstructured.text(unstructured.child_object(item, "data"), "text") for name, item in (await self.attachments()).items()
        }
        expect(found == dict(texts), f"{self.name} has attached {found}, not yet {dict(texts)}")

    async def rested(self, target: ResourceInfo, name: str, *, namespace: str = "") -> None:
        """Raise AssertionError unless the last call for an object showed it and its attachments as they are.

        Until something changes, its hook is not called again and nothing is written for it.
        """
        space = namespace or self.story.name
        obj = await self.story.cluster.get(target, space, name)
        uid, attached = unstructured.uid(obj), (await self.attachments()).values()
        own = [each for each in attached if (owner := controller_ref(each)) is not None and owner.uid == uid]
        expect_last_call_shows(self.calls(of=name), [obj, *own])

    async def attachments(self) -> dict[str, JsonObject]:
        """The ConfigMaps of the story's namespace whose annotation names it."""
        listed = await self.story.cluster.list(CONFIG_MAPS, self.story.name)
        marked = "metacontroller.k8s.io/decorator-controller"
        return {unstructured.name(item): item for item in listed if unstructured.annotations(item).get(marked) == self.name}

    def _hook_name(self, hook: str) -> str:
        return f"{self.name}-decorator-{hook}"
