"""A cluster with one parent whose Gadgets roll. A test runs its syncs one by one, and may interrupt them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from builders import THINGS
from fake_api import FakeApi
from fake_hooks import FakeHooks, FakeLease, FakeRecorder, FakeSubscriptions, OpenSlot
from rolling import GADGETS, READY, gadgets_of, rolling_controller, rolling_parent
from syncing import a_syncer

from metaloop.common.api.revision import REVISIONS, claimed_by, patch_of
from metaloop.common.errors import LeaseLost
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Granted, Observation, ObservedGroup
from metaloop.common.report import SyncReport


def gadget_hook(request: JsonObject) -> JsonObject:
    """The answer of `gadgets_of` as JSON."""
    answer = gadgets_of(unstructured.child_object(request, "parent"))
    return {"status": answer.status, "children": [*answer.children]}


@dataclass
class GenerationApi(FakeApi):
    """Increments a Gadget's generation with each change of its spec, as a real API server does."""

    def put(self, info: ResourceInfo, obj: JsonObject) -> JsonObject:
        """Stores `obj`."""
        if info == GADGETS:
            old = self.objects.get((str(info.id), unstructured.namespace(obj), unstructured.name(obj)))
            generation = unstructured.generation(old) + (old.get("spec") != obj.get("spec")) if old is not None else 1
            obj = {**obj, "metadata": {**unstructured.metadata(obj), "generation": generation}}
        return super().put(info, obj)


@dataclass
class RewritingApi(GenerationApi):
    """Has an admission plugin that writes the text of each Gadget in capitals."""

    def put(self, info: ResourceInfo, obj: JsonObject) -> JsonObject:
        """Stores `obj` as admission rewrites it."""
        return super().put(info, _shouted(obj) if info == GADGETS else obj)

    async def replace(
        self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Replaces the object as admission rewrites it."""
        return await super().replace(info, _shouted(obj) if info == GADGETS else obj, subresource, params=params)


def _shouted(obj: JsonObject) -> JsonObject:
    spec = unstructured.child_object(obj, "spec")
    return {**obj, "spec": {**spec, "text": unstructured.text(spec, "text").upper()}}


class RollingSync:
    """A cluster, a hook, and a watcher whose cache is always current. Gadgets are not ready until `heal`."""

    def __init__(
        self,
        *,
        parent: JsonObject | None = None,
        hook: Callable[[JsonObject], JsonObject] = gadget_hook,
        api: GenerationApi | None = None,
        **controller: JsonValue,
    ) -> None:
        self.api = api or GenerationApi()
        self.hooks = FakeHooks(hook)
        self.recorder = FakeRecorder()
        self.subscriptions = FakeSubscriptions()
        self.controller = rolling_controller(**controller)  # type: ignore[arg-type]
        self.api.put(THINGS, parent or rolling_parent())
        self._syncer = a_syncer(self.api, self.hooks, self.recorder, subscriptions=self.subscriptions)

    @property
    def parent(self) -> JsonObject:
        return self.api.all_of(THINGS)[0]

    @property
    def condition(self) -> tuple[JsonValue, JsonValue]:
        """The status and the reason of the condition Updated."""
        conditions = unstructured.child_object(self.parent, "status").get("conditions")
        assert isinstance(conditions, list)
        [updated] = [each for each in conditions if isinstance(each, dict) and each.get("type") == "Updated"]
        return updated["status"], updated["reason"]

    @property
    def gadgets(self) -> dict[str, JsonObject]:
        return {unstructured.name(obj): obj for obj in self.api.all_of(GADGETS)}

    @property
    def texts(self) -> dict[str, str]:
        """The text of each Gadget."""
        return {name: unstructured.text(unstructured.child_object(obj, "spec"), "text") for name, obj in self.gadgets.items()}

    @property
    def revisions(self) -> dict[str, list[str]]:
        """The children of each revision, by the revision's text."""
        return {_text_of(obj): sorted(child.name for child in claimed_by(obj)) for obj in self.api.all_of(REVISIONS)}

    def change(self, **spec: JsonValue) -> None:
        """Set these fields of the parent's spec."""
        parent = self.parent
        self.api.put(THINGS, {**parent, "spec": {**unstructured.child_object(parent, "spec"), **spec}})

    def say(self, text: str) -> None:
        """Set the text of the parent's template."""
        self.change(template={"text": text})

    def heal(self, *names: str) -> None:
        """Make those of these Gadgets ready that exist."""
        for name in names:
            if name in self.gadgets:
                self.set_status(name, {**READY, "observedGeneration": unstructured.generation(self.gadgets[name])})

    def set_status(self, name: str, status: JsonObject) -> None:
        """Set the status of a Gadget."""
        self.api.put(GADGETS, {**self.gadgets[name], "status": status})

    def remove(self, info: ResourceInfo, names: Iterable[str]) -> None:
        """Delete these objects."""
        for name in names:
            del self.api.objects[str(info.id), "default", name]

    def remove_revision(self, text: str) -> None:
        """Delete the revision of a text."""
        self.remove(REVISIONS, [unstructured.name(obj) for obj in self.api.all_of(REVISIONS) if _text_of(obj) == text])

    def observe(self, *, revisions: Iterable[JsonObject] | None = None) -> Granted:
        """The observation. `revisions` are those that the watcher has seen; all of them by default."""
        observation = Observation(
            controller=self.controller,
            parent_resource=THINGS,
            parent=self.parent,
            children=[ObservedGroup(info=GADGETS, objects=self.api.all_of(GADGETS))],
            revisions=[*(self.api.all_of(REVISIONS) if revisions is None else revisions)],
        )
        return Granted(lease="lease-1", lease_seconds=5.0, observation=observation)

    async def run(self, granted: Granted | None = None) -> SyncReport:
        """Runs one sync."""
        self.api.requests.clear()
        return await self._syncer.sync(granted or self.observe(), OpenSlot(), FakeLease())

    async def run_until_killed(self, *, after_requests: int) -> bool:
        """Runs one sync whose worker dies after so many requests. Returns whether the sync ended before."""
        try:
            await self._syncer.sync(self.observe(), OpenSlot(), FakeLease(requests_left=after_requests))
        except LeaseLost:
            return False
        return True


def _text_of(revision: JsonObject) -> str:
    return unstructured.text(unstructured.child_object(unstructured.child_object(patch_of(revision), "spec"), "template"), "text")
