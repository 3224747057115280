"""A cluster in memory with one component. A test runs its passes one by one, each with its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from builders import THINGS
from components import NOW, PREFIX, SERVED

from metaloop.common.api.component import ComponentController, parse_component
from metaloop.common.errors import ApiStatus, Conflict, MetaloopError
from metaloop.common.http.body import whole
from metaloop.common.json import JsonObject, JsonValue, dumps, loads
from metaloop.common.kube.errors import AlreadyExists
from metaloop.common.objects import unstructured
from metaloop.common.observation import ObservedGroup, Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.component.cluster import Cluster, KindName
from metaloop.reconciler.core.component.identity import ObjectKey, key_of
from metaloop.reconciler.core.component.inventory import Item, inventory_in
from metaloop.reconciler.core.component.preview import Preview
from metaloop.reconciler.core.component.storage import joined, names_in
from metaloop.reconciler.core.effects import Done, Effects
from metaloop.reconciler.core.kinds.component import sync_component
from metaloop.reconciler.core.kinds.component_plan import preview_component
from metaloop.reconciler.core.model import ChildAction, CreateChild, DeleteChild, Observed
from metaloop.reconciler.core.steps import (
    CallHook,
    DescribeCluster,
    EditParent,
    FindForeign,
    ReadObjects,
    Resync,
    Step,
    Steps,
    SubscribeRelated,
    WriteChildren,
)
from metaloop.reconciler.errors import Failure

T = TypeVar("T")


def a_component_controller(**spec: JsonValue) -> ComponentController:
    """A ComponentController of THINGS."""
    own: JsonObject = {
        "prefix": PREFIX,
        "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource},
        "generator": {"webhook": {"url": "http://hook.example/generate"}},
        "timeout": "1m",
    }
    return parse_component({"kind": "ComponentController", "metadata": {"name": "c", "uid": "u"}, "spec": {**own, **spec}})


@dataclass(kw_only=True)
class World:
    """The component, its hook, and the objects of the cluster."""

    controller: ComponentController = field(default_factory=a_component_controller)
    answer: JsonObject = field(default_factory=dict[str, JsonValue])
    failure: MetaloopError | None = None
    """What the generator fails with."""
    lifecycle: dict[str, JsonObject | MetaloopError] = field(default_factory=dict[str, JsonObject | MetaloopError])
    """What the other hooks answer, or fail with, by their names."""
    component: JsonObject | None = field(
        default_factory=lambda: {
            "apiVersion": THINGS.api_version,
            "kind": THINGS.kind,
            "metadata": {"name": "app", "namespace": "default", "uid": "uid-of-app", "generation": 1},
            "spec": {},
        }
    )
    objects: dict[ObjectKey, JsonObject] = field(default_factory=dict[ObjectKey, JsonObject])
    foreign: list[str] = field(default_factory=list[str])
    lasting: bool = False
    """Whether deleted objects stay for a while."""
    drops_inventory: bool = False
    skips_writes: bool = False
    """Whether writes are left out, as those are that are known to change nothing."""
    is_watched: bool = True
    """Whether subscriptions show anything."""
    crash_before: str = ""
    """The name of an edit of the component that always fails. Nothing is left of it then."""
    subscribed: SubscribeRelated | None = None
    """The component's subscription, if it has one."""
    now: datetime = NOW
    steps: list[Step] = field(default_factory=list[Step])
    """Those of the last pass."""
    version: int = 0

    def desires(self, *children: JsonObject, **answer: JsonValue) -> None:
        """From now on the hook answers these objects."""
        self.answer = {"children": [*children], **answer}

    def run(self, *, after_seconds: float = 0) -> MetaloopError | None:
        """One pass. Returns the error that it ended with."""
        self.now += timedelta(seconds=after_seconds)
        try:
            self._driven(sync_component(self._observed(), self.now))
        except MetaloopError as failure:
            return failure
        return None

    def previewed(self) -> list[str]:
        """What a plan shows: `wave 0: create a`."""
        preview = self.preview()
        return [f"{wave.title}: {each.verb} {each.key.name}" for wave in preview.waves for each in wave.objects]

    def preview(self) -> Preview:
        """What a plan shows."""
        return self._driven(preview_component(self._observed(), self.now))

    def _driven(self, steps: Steps[T]) -> T:
        """The result of a generator of steps. Raises the error that it ends with."""
        self.steps = []
        try:
            step = next(steps)
            while True:
                self.steps.append(step)
                try:
                    result = self._result(step)
                except MetaloopError as failure:
                    step = steps.throw(failure)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value

    # -- what a test looks at ------------------------------------------------------------------------------------------

    @property
    def status(self) -> JsonObject:
        """The status of the component."""
        return unstructured.child_object(self.component or {}, "status")

    @property
    def ready(self) -> JsonObject:
        """The condition Ready."""
        return next(each for each in unstructured.child_objects(self.status, "conditions") if each["type"] == "Ready")

    @property
    def inventory(self) -> dict[ObjectKey, Item]:
        """The inventory in the status."""
        pieces = [self.objects[ObjectKey("", "ConfigMap", "default", name)] for name in names_in(self.status)]
        return joined(pieces) if pieces else inventory_in(self.status)

    @property
    def phases(self) -> dict[str, str]:
        """The phases of the items by name."""
        return {key.name: item.phase for key, item in self.inventory.items()}

    @property
    def written(self) -> list[list[str]]:
        """What the last pass wrote to objects, request by request."""
        plans = [step.plan for step in self.steps if isinstance(step, WriteChildren)]
        return [[f"{type(action).__name__.removesuffix('Child').lower()} {key_of(action.obj).name}" for action in plan] for plan in plans]

    @property
    def reads(self) -> list[str]:
        """The names of the objects that the last pass read."""
        return [address.name for step in self.steps if isinstance(step, ReadObjects) for address in step.addresses]

    @property
    def resync_seconds(self) -> float:
        """How soon the last pass asked for the next one."""
        return min(step.after_seconds for step in self.steps if isinstance(step, Resync))

    @property
    def asked(self) -> JsonObject:
        """The last request of the generator."""
        return self.requests["generate"]

    @property
    def requests(self) -> dict[str, JsonObject]:
        """The last request of each hook in the last pass, in the order of the calls."""
        calls = [step for step in self.steps if isinstance(step, CallHook)]
        return {call.hook.name: loads(whole(body)) for call in calls for body in call.bodies.values()}

    @property
    def step_names(self) -> list[str]:
        """The kinds of the steps of the last pass, hooks by their own names."""
        return [step.hook.name if isinstance(step, CallHook) else type(step).__name__ for step in self.steps]

    def add(self, *objects: JsonObject) -> None:
        """Objects that somebody else made."""
        for obj in objects:
            self.objects[key_of(obj)] = self._stored(obj)

    def edit(self, name: str, **fields: JsonValue) -> None:
        """Change fields of an object."""
        [key] = [key for key in self.objects if key.name == name]
        self.objects[key] = self._stored({**self.objects[key], **fields})

    def delete(self, **metadata: JsonValue) -> None:
        """Delete the component."""
        assert self.component is not None
        before = unstructured.metadata(self.component)
        self.component = {**self.component, "metadata": {**before, "deletionTimestamp": "2026-01-02T12:00:00Z", **metadata}}

    def vanish(self) -> None:
        """Whatever is being deleted is gone."""
        self.objects = {key: obj for key, obj in self.objects.items() if not unstructured.is_deleting(obj)}

    # -- the results of steps ------------------------------------------------------------------------------------------

    def _observed(self) -> Observed:
        assert self.component is not None
        return Observed(
            controller=self.controller,
            info=THINGS,
            parent=self.component,
            groups=(),
            revisions=(),
            related=self._related(self.subscribed.fingerprint, self.subscribed.queries) if self.subscribed else None,
            managed_fields={},
            part="",
            inputs=(),
        )

    def _result(self, step: Step) -> object:  # noqa: PLR0911 - one for each kind of step
        match step:
            case EditParent(_, edit) if edit.name == self.crash_before:
                raise Conflict("somebody else wrote it")
            case EditParent(observed, edit):
                return self._edited(edit.mutate(observed.parent))
            case CallHook(hook=hook):
                return [dumps(self._answer_of(hook.name))]
            case DescribeCluster(kinds):
                return Cluster(uid="cluster", resources={KindName(*kind): SERVED[kind] for kind in kinds if kind in SERVED})
            case ReadObjects(addresses):
                return [self.objects.get(ObjectKey(each.info.group, each.info.kind, each.namespace, each.name)) for each in addresses]
            case FindForeign():
                return self.foreign
            case SubscribeRelated(fingerprint, queries):
                self.subscribed = step
                return self._related(fingerprint, queries)
            case WriteChildren() if self.skips_writes:
                return Effects()
            case WriteChildren(_, plan, _):
                results = [self._carried_out(action) for action in plan]
                return Effects(
                    done=tuple([each for each in results if isinstance(each, Done)]),
                    failures=tuple([each for each in results if isinstance(each, Failure)]),
                )
            case _:
                return None

    def _edited(self, component: JsonObject | None) -> JsonObject | None:
        if component is not None:
            status = unstructured.child_object(component, "status")
            dropped = {"inventory", "inventoryConfigMaps"} if self.drops_inventory else set[str]()
            kept = {name: value for name, value in status.items() if name not in dropped}
            self.component = {**component, "status": kept}
            if unstructured.is_deleting(component) and not unstructured.finalizers(component):
                self.component = None
        return self.component

    def _answer_of(self, hook: str) -> JsonObject:
        answer = (self.failure or self.answer) if hook == "generate" else self.lifecycle.get(hook, {})
        if isinstance(answer, MetaloopError):
            raise answer
        return answer

    def _related(self, fingerprint: str, queries: Sequence[RelatedQuery]) -> Related:
        by_id = {info.id: info for info in SERVED.values()}
        groups = [ObservedGroup(info=by_id.get(query.resource, THINGS), objects=[*self._selected(query)]) for query in queries]
        return Related(fingerprint=fingerprint, groups=groups if self.is_watched else [])

    def _selected(self, query: RelatedQuery) -> Iterator[JsonObject]:
        for key, obj in self.objects.items():
            info = SERVED.get((unstructured.api_version(obj), key.kind))
            is_of_kind = info is not None and info.id == query.resource
            if is_of_kind and query.selects(name=key.name, labels=unstructured.labels(obj)) and query.reaches(key.namespace, {}):
                yield obj

    def _carried_out(self, action: ChildAction) -> Done | Failure:
        key = key_of(action.obj)
        if isinstance(action, CreateChild) and key in self.objects:
            error = AlreadyExists(ApiStatus(code=409, reason="AlreadyExists", message="it exists"))
            return Failure(what=f"create {unstructured.describe(action.obj)}", error=error)
        if isinstance(action, DeleteChild):
            if self.lasting:
                self.edit(key.name, metadata={**unstructured.metadata(action.obj), "deletionTimestamp": "2026-01-02T12:00:00Z"})
            else:
                del self.objects[key]
            return Done(action=action, written=action.obj)
        self.objects[key] = self._stored(action.obj)
        return Done(action=action, written=self.objects[key])

    def _stored(self, obj: JsonObject) -> JsonObject:
        self.version += 1
        metadata = {"uid": f"uid-{self.version}", **unstructured.metadata(obj), "resourceVersion": str(self.version), "generation": 1}
        return {**obj, "metadata": metadata}
