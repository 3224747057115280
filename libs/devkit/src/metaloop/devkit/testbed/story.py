"""A story is the part of a lab that belongs to one test: a namespace, a controller, its hooks and its parents."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed import manifests
from metaloop.devkit.testbed.cluster import COMPONENTS, COMPOSITES, CONFIG_MAPS, DECORATORS, EVENTS, MAPS, NAMESPACES, ApiRefused, Cluster
from metaloop.devkit.testbed.eventually import expect
from metaloop.devkit.testbed.lab import Lab
from metaloop.devkit.testbed.webhook import Behaviour, Call, expect_last_call_shows

THINGS = manifests.parent_resource("things")
"""The parent kind that stories share, because the garbage collector needs up to 40 s to notice a new kind."""

STORY_LABEL = "story"

_CONFLICT = 409
_EDIT_ATTEMPTS = 5


def three_config_maps(request: JsonObject) -> JsonObject:
    """The hook of most stories: `spec.count` ConfigMaps (default 3) with `spec.text`.

    The status counts the observed ones.
    """
    return answer_with(request, config_maps_of(request))


def config_maps_of(request: JsonObject) -> list[JsonObject]:
    """The children that `three_config_maps` wants."""
    parent = unstructured.child_object(request, "parent")
    spec = unstructured.child_object(parent, "spec")
    name = unstructured.name(parent)
    count = unstructured.integer(spec, "count") if "count" in spec else 3
    data = {"text": unstructured.text(spec, "text")}
    return [manifests.config_map(f"{name}-{index}", labels={"parent": name}, data=data) for index in range(count)]


def answer_with(request: JsonObject, children: list[JsonObject]) -> JsonObject:
    """An answer with these children, and the number of observed ConfigMaps as its status."""
    return {"status": {"children": len(_observed_config_maps(request))}, "children": list(children)}


def teardown_in_order(request: JsonObject) -> JsonObject:
    """The last of the children goes first, then the one before it; done when none is left."""
    observed = sorted(_observed_config_maps(request))
    parent = unstructured.name(unstructured.child_object(request, "parent"))
    kept: list[JsonValue] = [manifests.config_map(name, labels={"parent": parent}) for name in observed[:-1]]
    return {"status": {}, "children": kept, "finalized": not observed}


def _observed_config_maps(request: JsonObject) -> JsonObject:
    return unstructured.child_object(unstructured.child_object(request, "children"), "ConfigMap.v1")


@dataclass(slots=True, kw_only=True)
class Story:
    """The part of the lab that belongs to one test.

    `name` is the name of its namespace, its controller and its hook.
    """

    lab: Lab
    name: str
    parents: ResourceInfo = THINGS

    @property
    def cluster(self) -> Cluster:
        """A client of the cluster."""
        return self.lab.cluster

    async def begin(self) -> None:
        """Create the namespace."""
        namespace: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        await self.cluster.create(NAMESPACES, namespace)

    async def end(self) -> None:
        """Delete the controllers, so that they do not disturb the next story."""
        await self.cluster.delete(COMPOSITES, "", self.name)
        for kind in (DECORATORS, MAPS, COMPONENTS):
            await self.cluster.delete_all(kind, labels=f"{STORY_LABEL}={self.name}")

    async def controller(
        self, behaviour: Behaviour = three_config_maps, *, children: list[JsonObject] | None = None, **spec: object
    ) -> JsonObject:
        """Create the story's controller, for the story's parents.

        By default, its children are ConfigMaps that are updated in place.
        """
        return await self.cluster.create(COMPOSITES, self.controller_manifest(behaviour, children=children, **spec))

    def controller_manifest(
        self, behaviour: Behaviour = three_config_maps, *, children: list[JsonObject] | None = None, **spec: object
    ) -> JsonObject:
        """The manifest that `controller` creates."""
        parent_rule = {
            "apiVersion": self.parents.api_version,
            "resource": self.parents.resource,
            "labelSelector": {"matchLabels": {STORY_LABEL: self.name}},
        }
        url = self.now_answers(behaviour)
        rules = [manifests.child_rule()] if children is None else children
        manifest = manifests.composite(
            self.name, parent=self.parents, hook_url=url, children=rules, **{"parentResource": parent_rule, **spec}
        )
        unstructured.metadata(manifest)["labels"] = dict(self.lab.labels)
        return manifest

    async def edit(self, **spec: object) -> None:
        """Replace these fields of the controller's spec; its other fields stay."""
        attempts = 1
        while not await self._is_edited(spec):
            attempts += 1
            expect(attempts <= _EDIT_ATTEMPTS, f"{self.name} is changed by others all the time")

    async def _is_edited(self, spec: Mapping[str, object]) -> bool:
        """Try to replace these fields of the controller's spec; False after a conflict with another write."""
        found = await self.cluster.get(COMPOSITES, "", self.name)
        found["spec"] = {**unstructured.child_object(found, "spec"), **spec}  # type: ignore[dict-item]
        try:
            await self.cluster.replace(COMPOSITES, found, namespace="", name=self.name)
        except ApiRefused as refusal:
            if refusal.code != _CONFLICT:
                raise
            return False
        return True

    def hook(self, name: str, behaviour: Behaviour, *, version: str = "v1") -> JsonObject:
        """The spec of a hook with this behaviour, for the controller's `spec.hooks`."""
        return {"version": version, "webhook": {"url": self.now_answers(behaviour, name), "timeout": manifests.HOOK_TIMEOUT}}

    def now_answers(self, behaviour: Behaviour, hook: str = "sync") -> str:
        """Set the behaviour of a hook, and return its URL."""
        return self.lab.webhook.on(self._hook_name(hook), behaviour)

    async def parent(self, name: str, *, labels: Mapping[str, str] | None = None, **spec: object) -> JsonObject:
        """Create a parent of this story."""
        obj = manifests.parent(
            self.parents,
            name,
            namespace=self._namespace,
            spec=dict(spec),  # type: ignore[arg-type]
            labels={STORY_LABEL: self.name, **(labels or {})},
        )
        return await self.cluster.create(self.parents, obj, namespace=self._namespace)

    async def change(self, name: str, **spec: object) -> JsonObject:
        """Set these fields of a parent's spec."""
        return await self.cluster.patch(self.parents, self._namespace, name, {"spec": dict(spec)})  # type: ignore[dict-item]

    async def config_maps(self, *, of: str = "") -> dict[str, JsonObject]:
        """The story's ConfigMaps by name, or those with the label of one parent."""
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
        """Raise AssertionError unless a parent's status is of its current generation, and counts this many children."""
        expect_settled(await self.cluster.get(self.parents, self._namespace, name), children=children)

    async def all_settled(self, *, children: int = 3) -> None:
        """Raise AssertionError unless that holds for all parents of the story."""
        for found in await self.all_parents():
            expect_settled(found, children=children)

    async def rested(self, name: str, *, children: int = 3, kind: ResourceInfo = CONFIG_MAPS) -> None:
        """Raise AssertionError unless a parent has settled, and the last call of its hook showed that.

        Until something changes, its hook is not called again and nothing is written for it: what a test counts from
        then on has its cause in the test. `kind` is the kind of its children, which have the label `parent`.
        """
        await self.settled(name, children=children)
        await self.last_call_shows(name, kind=kind)

    async def last_call_shows(self, name: str, *, kind: ResourceInfo = CONFIG_MAPS) -> None:
        """Raise AssertionError unless the last call for a parent showed it and its children as they are."""
        parent = await self.cluster.get(self.parents, self._namespace, name)
        observed = await self.cluster.list(kind, self.name, labels=f"parent={name}")
        expect_last_call_shows(self.calls(parent=name), [parent, *observed])

    async def never_shown(self, *, text: str) -> None:
        """Raise AssertionError if a call showed a parent with this text in its spec."""
        specs = [unstructured.child_object(call.parent, "spec") for call in self.calls()]
        expect(all(unstructured.text(spec, "text") != text for spec in specs), f"{self.name} was asked about {text!r}")

    async def all_parents(self) -> list[JsonObject]:
        """The story's parents."""
        return await self.cluster.list(self.parents, self._namespace, labels=f"{STORY_LABEL}={self.name}")

    async def shows(self, name: str, *, text: str, children: int = 3) -> None:
        """Raise AssertionError unless a parent has this many ConfigMaps, all with this text."""
        found = await self.texts(of=name)
        expect(list(found.values()) == [text] * children, f"children of {name} are {found}, not yet {children} x {text!r}")

    async def relabel(self, name: str, labels: Mapping[str, str]) -> None:
        """Add labels to a parent."""
        await self.cluster.patch(self.parents, self._namespace, name, {"metadata": {"labels": dict(labels)}})

    async def warning(self, *, of: str, containing: str = "", reason: str = "SyncError") -> JsonObject:
        """The Warning event about a parent or the controller whose message contains a text.

        Of any reason if that is empty.
        """
        return await self._event("Warning", of=of, reason=reason, containing=containing)

    async def normal_event(self, *, of: str, reason: str) -> JsonObject:
        """The Normal event about an object."""
        return await self._event("Normal", of=of, reason=reason)

    async def ready(self, *, status: str, reason: str, of: ResourceInfo = COMPOSITES) -> None:
        """Raise AssertionError unless the controller's condition `Ready` has this status and reason."""
        found = unstructured.child_object(await self.cluster.get(of, "", self.name), "status").get("conditions")
        conditions = [each for each in found if is_object(each)] if is_array(found) else []
        found_ready = [(each["status"], each["reason"]) for each in conditions if each["type"] == "Ready"]
        expect(found_ready == [(status, reason)], f"conditions of {self.name} are {conditions}")

    async def _event(self, kind: str, *, of: str, reason: str, containing: str = "") -> JsonObject:
        about_controller = of == self.name
        events = await self.cluster.list(EVENTS, "default" if about_controller else self._namespace or "default")
        ours = [event for event in events if unstructured.text(unstructured.child_object(event, "involvedObject"), "name") == of]
        for event in ours:
            fits = event.get("type") == kind and (not reason or event.get("reason") == reason)
            if fits and containing in unstructured.text(event, "message"):
                return event
        seen = [f"{event.get('type')} {event.get('reason')}: {event.get('message')}" for event in ours]
        raise AssertionError(f"no {kind} {reason} about {of} contains {containing!r}, only {seen}")

    def calls(self, hook: str = "sync", *, parent: str = "") -> list[Call]:
        """The calls of a hook so far."""
        return self.lab.webhook.calls(self._hook_name(hook), parent=parent)

    async def called(self, times: int, hook: str = "sync", *, parent: str = "") -> None:
        """Raise AssertionError unless a hook was called at least this many times."""
        await self.lab.webhook.called(times, self._hook_name(hook), parent=parent)

    def no_more_than(self, times: int, hook: str = "sync", *, parent: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was called at most this many times."""
        return self.lab.webhook.no_more_than(times, self._hook_name(hook), parent=parent)

    async def writes_since(self, mark: int) -> list[str]:
        """The services' writes in the story's namespace since a mark of the audit log, as `update pods/x`."""
        requests = [each for each in await self.lab.audit.ours_since(mark) if each.is_write and each.namespace == self.name]
        return [f"{each.verb} {each.resource}/{each.name}" for each in requests]

    def _hook_name(self, hook: str) -> str:
        return self.name if hook == "sync" else f"{self.name}-{hook}"

    @property
    def _namespace(self) -> str:
        return self.name if self.parents.namespaced else ""


def expect_settled(parent: JsonObject, *, children: int) -> None:
    """Raise AssertionError unless a parent's status is of its current generation, and counts this many children."""
    expected = {"children": children, "observedGeneration": unstructured.generation(parent)}
    found = unstructured.child_object(parent, "status")
    expect(found == expected, f"status of {unstructured.name(parent)} is {found}, not yet {expected}")
