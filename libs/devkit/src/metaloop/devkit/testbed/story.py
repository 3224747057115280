"""One story told against a running lab: a namespace and a controller of its own, and the words that tests are told in."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import manifests
from metaloop.devkit.testbed.cluster import COMPOSITES, CONFIG_MAPS, DECORATORS, EVENTS, NAMESPACES, ApiRefused, Cluster
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.lab import Lab
from metaloop.devkit.testbed.webhook import Behaviour, Call

THINGS = manifests.parent_resource("things")
"""The parent kind that stories share: the garbage collector needs up to 40 s to learn of a new one."""

STORY_LABEL = "story"

_CONFLICT = 409
_EDIT_ATTEMPTS = 5


def three_config_maps(request: JsonObject) -> JsonObject:
    """What most stories' hook says: as many ConfigMaps as `spec.count` (3), each with `spec.text`; the status counts the observed ones."""
    return answer_with(request, config_maps_of(request))


def config_maps_of(request: JsonObject) -> list[JsonObject]:
    """The children that `three_config_maps` asks for."""
    parent = unstructured.child_object(request, "parent")
    spec = unstructured.child_object(parent, "spec")
    name = unstructured.name(parent)
    count = unstructured.integer(spec, "count") if "count" in spec else 3
    data = {"text": unstructured.text(spec, "text")}
    return [manifests.config_map(f"{name}-{index}", labels={"parent": name}, data=data) for index in range(count)]


def answer_with(request: JsonObject, children: list[JsonObject]) -> JsonObject:
    """An answer with these children, and the number of observed ConfigMaps as its status."""
    observed = unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")
    return {"status": {"children": len(observed)}, "children": list(children)}


@dataclass(slots=True, kw_only=True)
class Story:
    """A test's own corner of the lab; `name` is its namespace, its controller and its hook."""

    lab: Lab
    name: str
    parents: ResourceInfo = THINGS

    @property
    def cluster(self) -> Cluster:
        """The way in."""
        return self.lab.cluster

    async def begin(self) -> None:
        """Make the namespace."""
        namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        await self.cluster.create(NAMESPACES, namespace)

    async def end(self) -> None:
        """Take the controllers away, so that the next story has the services for itself."""
        await self.cluster.delete(COMPOSITES, "", self.name)
        await self.cluster.delete_all(DECORATORS, labels=f"{STORY_LABEL}={self.name}")

    async def controller(
        self, behaviour: Behaviour = three_config_maps, *, children: list[JsonObject] | None = None, **spec: object
    ) -> JsonObject:
        """The story's controller, created: it serves the story's own parents with ConfigMaps updated in place, unless told otherwise."""
        return await self.cluster.create(COMPOSITES, self.controller_manifest(behaviour, children=children, **spec))

    def controller_manifest(
        self, behaviour: Behaviour = three_config_maps, *, children: list[JsonObject] | None = None, **spec: object
    ) -> JsonObject:
        """What `controller` creates."""
        parent_rule = {
            "apiVersion": self.parents.api_version,
            "resource": self.parents.resource,
            "labelSelector": {"matchLabels": {STORY_LABEL: self.name}},
        }
        url = self.now_answers(behaviour)
        rules = [manifests.child_rule()] if children is None else children
        return manifests.composite(self.name, parent=self.parents, hook_url=url, children=rules, **{"parentResource": parent_rule, **spec})

    async def edit(self, **spec: object) -> None:
        """The controller has these fields in its spec, whole; its others stay."""
        for attempt in range(1, 1 + _EDIT_ATTEMPTS):
            found = await self.cluster.get(COMPOSITES, "", self.name)
            found["spec"] = {**unstructured.child_object(found, "spec"), **spec}  # type: ignore[dict-item]
            try:
                await self.cluster.replace(COMPOSITES, found, namespace="", name=self.name)
            except ApiRefused as refusal:
                if refusal.code != _CONFLICT or attempt == _EDIT_ATTEMPTS:
                    raise
            else:
                return

    def hook(self, name: str, behaviour: Behaviour, *, version: str = "v1") -> JsonObject:
        """A hook of the controller, for its `spec.hooks`, that behaves so."""
        return {"version": version, "webhook": {"url": self.now_answers(behaviour, name), "timeout": "5s"}}

    def now_answers(self, behaviour: Behaviour, hook: str = "sync") -> str:
        """The URL of a hook, which from now on behaves so."""
        return self.lab.webhook.on(self._hook_name(hook), behaviour)

    async def parent(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: object) -> JsonObject:
        """A parent of this story, created."""
        obj = manifests.parent(
            self.parents,
            name,
            namespace=self._namespace,
            spec=dict(spec),  # type: ignore[arg-type]
            labels={STORY_LABEL: self.name, **(labels or {})},
        )
        return await self.cluster.create(self.parents, obj, namespace=self._namespace)

    async def change(self, name: str, **spec: object) -> JsonObject:
        """A parent after these fields of its spec were set."""
        return await self.cluster.patch(self.parents, self._namespace, name, {"spec": dict(spec)})  # type: ignore[dict-item]

    async def config_maps(self, *, of: str = "") -> dict[str, JsonObject]:
        """The story's ConfigMaps by name, or those labelled as children of one parent."""
        listed = await self.cluster.list(CONFIG_MAPS, self.name, labels=f"parent={of}" if of else "parent")
        return {unstructured.name(item): item for item in listed}

    async def texts(self, *, of: str = "") -> dict[str, str]:
        """The `text` of each such ConfigMap."""
        found = await self.config_maps(of=of)
        return {name: unstructured.text(unstructured.child_object(item, "data"), "text") for name, item in found.items()}

    async def status(self, name: str) -> JsonObject:
        """A parent's status."""
        return unstructured.child_object(await self.cluster.get(self.parents, self._namespace, name), "status")

    async def settled(self, name: str, *, children: int = 3) -> None:
        """Raises AssertionError until a parent's status is of its present generation and counts this many children."""
        expect_settled(await self.cluster.get(self.parents, self._namespace, name), children=children)

    async def all_settled(self, *, children: int = 3) -> None:
        """Raises AssertionError until that holds for each parent of the story."""
        for found in await self.all_parents():
            expect_settled(found, children=children)

    async def all_parents(self) -> list[JsonObject]:
        """The story's parents."""
        return await self.cluster.list(self.parents, self._namespace, labels=f"{STORY_LABEL}={self.name}")

    async def shows(self, name: str, *, text: str, children: int = 3) -> None:
        """Raises AssertionError until a parent has this many ConfigMaps, all with this text."""
        found = await self.texts(of=name)
        expect(list(found.values()) == [text] * children, f"children of {name} are {found}, not yet {children} x {text!r}")

    async def relabel(self, name: str, labels: Mapping[str, str]) -> None:
        """A parent has these labels besides its others."""
        await self.cluster.patch(self.parents, self._namespace, name, {"metadata": {"labels": dict(labels)}})

    async def warning(self, *, of: str, containing: str = "", reason: str = "SyncError") -> JsonObject:
        """The Warning event about an object (a parent, or the controller) whose message has a text in it; of any reason when it is empty."""
        return await self._event("Warning", of=of, reason=reason, containing=containing)

    async def normal_event(self, *, of: str, reason: str) -> JsonObject:
        """The Normal event about an object."""
        return await self._event("Normal", of=of, reason=reason)

    async def ready(self, *, status: str, reason: str, of: ResourceInfo = COMPOSITES) -> None:
        """Raises AssertionError until the condition `Ready` of the story's controller says so."""
        found = unstructured.child_object(await self.cluster.get(of, "", self.name), "status").get("conditions")
        conditions = [each for each in found if is_object(each)] if is_array(found) else []
        told = [(each["status"], each["reason"]) for each in conditions if each["type"] == "Ready"]
        expect(told == [(status, reason)], f"conditions of {self.name} are {conditions}")

    async def _event(self, kind: str, *, of: str, reason: str, containing: str = "") -> JsonObject:
        about_controller = of == self.name
        events = await self.cluster.list(EVENTS, "default" if about_controller else self._namespace or "default")
        ours = [event for event in events if unstructured.text(unstructured.child_object(event, "involvedObject"), "name") == of]
        for event in ours:
            fits = event.get("type") == kind and (not reason or event.get("reason") == reason)
            if fits and containing in unstructured.text(event, "message"):
                return event
        seen = [f"{event.get('type')} {event.get('reason')}: {event.get('message')}" for event in ours]
        raise AssertionError(f"no {kind} {reason} about {of} has {containing!r} in it, only {seen}")

    def calls(self, hook: str = "sync", *, parent: str = "") -> list[Call]:
        """A hook's calls so far."""
        return self.lab.webhook.calls(self._hook_name(hook), parent=parent)

    async def called(self, times: int, hook: str = "sync", *, parent: str = "") -> None:
        """Raises AssertionError until a hook was called so often."""
        await self.lab.webhook.called(times, self._hook_name(hook), parent=parent)

    def no_more_than(self, times: int, hook: str = "sync", *, parent: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was not called more often than that."""
        return self.lab.webhook.no_more_than(times, self._hook_name(hook), parent=parent)

    def writes_since(self, mark: int) -> list[str]:
        """What the services wrote into the story's namespace since a mark, as the API server has it: `update pods/x`."""
        requests = (each for each in self.lab.audit.ours_since(mark) if each.is_write and each.namespace == self.name)
        return [f"{each.verb} {each.resource}/{each.name}" for each in requests]

    def _hook_name(self, hook: str) -> str:
        return self.name if hook == "sync" else f"{self.name}-{hook}"

    @property
    def _namespace(self) -> str:
        return self.name if self.parents.namespaced else ""


def expect_settled(parent: JsonObject, *, children: int) -> None:
    """Raises AssertionError unless a parent's status is of its present generation and counts this many children."""
    expected = {"children": children, "observedGeneration": unstructured.generation(parent)}
    found = unstructured.child_object(parent, "status")
    expect(found == expected, f"status of {unstructured.name(parent)} is {found}, not yet {expected}")
