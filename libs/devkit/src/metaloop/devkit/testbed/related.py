"""Related objects: a controller with a customize hook, ConfigMaps in several namespaces, and what hooks see of them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, ApiRefused
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story, three_config_maps
from metaloop.devkit.testbed.webhook import Behaviour

Rules: TypeAlias = Callable[[JsonObject], Sequence[JsonObject]]
"""The rules for the related objects of a parent."""

_ALREADY_EXISTS = 409


def rule(resource: ResourceInfo, **fields: object) -> JsonObject:
    """One rule of a customize hook's answer."""
    return {"apiVersion": resource.api_version, "resource": resource.resource, **fields}  # type: ignore[dict-item]


class RelatedObjects:
    """The related objects of a story.

    All of them have the story's label, so that label selectors of rules do not match objects of other stories.
    """

    def __init__(self, story: Story) -> None:
        """Nothing is created yet."""
        self.story = story

    @property
    def red(self) -> str:
        """The namespace with the label color=red."""
        return f"{self.story.name}-red"

    @property
    def blue(self) -> str:
        """The namespace with the label color=blue."""
        return f"{self.story.name}-blue"

    async def namespace(self, color: str) -> None:
        """Create another namespace, with the label of a colour."""
        name = f"{self.story.name}-{color}"
        await self.story.cluster.create(NAMESPACES, named(NAMESPACES, name, labels={"color": color, "story": self.story.name}))

    async def config_map(self, name: str, *, namespace: str = "", k: str = "", text: str = "") -> None:
        """Create or change a ConfigMap, in the story's namespace by default."""
        space = namespace or self.story.name
        obj = config_map(name, labels={"story": self.story.name, "k": k}, data={"text": text})
        try:
            await self.story.cluster.create(CONFIG_MAPS, obj, namespace=space)
        except ApiRefused as refusal:
            if refusal.code != _ALREADY_EXISTS:
                raise
            await self.story.cluster.patch(CONFIG_MAPS, space, name, {"data": {"text": text}})

    def placed(self, fields: JsonObject) -> JsonObject:
        """A rule for ConfigMaps of this story.

        `HOME`, `RED` and `BLUE` become its namespaces, and selectors also require its label.
        """
        named_fields = {key: self.key(value) if isinstance(value, str) else value for key, value in fields.items()}
        for selector in ("labelSelector", "namespaceSelector"):
            wanted = named_fields.get(selector)
            if isinstance(wanted, dict):
                labels = {**unstructured.child_object(wanted, "matchLabels"), "story": self.story.name}
                named_fields[selector] = {**wanted, "matchLabels": labels}
        return rule(CONFIG_MAPS, **named_fields)

    def key(self, text: str) -> str:
        """A text with the names of the namespaces in place of `HOME`, `RED` and `BLUE`."""
        return text.replace("HOME", self.story.name).replace("RED", self.red).replace("BLUE", self.blue)

    def hooks(self, rules: Rules, *, answer: Behaviour = three_config_maps, version: str = "v1") -> JsonObject:
        """The hooks of a controller; the customize hook answers with these rules."""
        self.set_rules(rules)
        return {
            "sync": self.story.hook("sync", answer, version=version),
            "customize": self.story.hook("customize", _customizing(rules), version=version),
        }

    async def controller(self, rules: Rules, *, answer: Behaviour = three_config_maps, version: str = "v1", **spec: object) -> None:
        """Create the story's controller, with a customize hook."""
        await self.story.controller(answer, **{"hooks": self.hooks(rules, answer=answer, version=version), **spec})

    def set_rules(self, rules: Rules) -> None:
        """From now on the customize hook answers with these rules."""
        self.story.now_answers(_customizing(rules), "customize")

    def shown(self, parent: str, group: str) -> JsonObject:
        """The story's related objects of one group in the last sync call for a parent, by their keys."""
        calls = self.story.calls(parent=parent)
        expect(calls, f"no call for {parent} yet")
        related = unstructured.child_object(calls[-1].request, "related")
        expect(group in related, f"there is no group {group}, only {list(related)}")
        return {key: obj for key, obj in unstructured.child_object(related, group).items() if is_object(obj) and self._is_own(obj)}

    def _is_own(self, obj: JsonObject) -> bool:
        """Whether an object belongs neither to another story nor to Kubernetes."""
        story = unstructured.labels(obj).get("story")
        is_in_own_namespace = unstructured.namespace(obj) in ("", self.story.name, self.red, self.blue)
        is_own = is_in_own_namespace if story is None else story == self.story.name
        return is_own and unstructured.name(obj) != "kube-root-ca.crt"

    async def shows(self, parent: str, group: str, keys: set[str]) -> None:
        """Raise AssertionError unless the last sync call for a parent had these related objects of a group."""
        found = set(self.shown(parent, group))
        expect(found == keys, f"the related objects of {parent} are {sorted(found)}, not yet {sorted(keys)}")


def _customizing(rules: Rules) -> Behaviour:
    def behave(request: JsonObject) -> JsonObject:
        return {"relatedResources": [*rules(unstructured.child_object(request, "parent"))]}

    return behave
