"""The values that a sync is made of, from what was observed of a parent to the outcome for its job."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from metaloop.common.api.controller import Controller
from metaloop.common.api.rules import UPDATE_METHODS, UpdateMethod
from metaloop.common.faults import AnyFault, Audience, Result
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Selector
from metaloop.common.observation import ObservedGroup, Related


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildGroup:
    """The children of one declared resource, and how drifted ones are updated.

    Before the children are claimed, `objects` are the candidates.
    """

    info: ResourceInfo
    method: UpdateMethod
    objects: tuple[JsonObject, ...]

    @property
    def rolls(self) -> bool:
        """Whether such children move from revision to revision, where the controller keeps revisions."""
        return UPDATE_METHODS[self.method].rolls

    def with_objects(self, objects: tuple[JsonObject, ...]) -> "ChildGroup":
        """The same group with other objects in it."""
        return ChildGroup(info=self.info, method=self.method, objects=objects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A parent and the objects around it, as the watcher's cache holds them.

    `groups` has one group for each declared child resource, in the order in which they are declared.
    """

    controller: Controller
    info: ResourceInfo
    parent: JsonObject
    groups: tuple[ChildGroup, ...]
    is_selected: bool = True
    """Whether the controller's own selectors select the parent. If not, it is ours only while it has our finalizer."""
    selector: Selector | None = None
    """Selects the parent's children. None if children are known by their owner alone, so that none is ever adopted."""
    revisions: tuple[JsonObject, ...]
    """Candidates for the ControllerRevisions of the parent."""
    related: Related | None
    """The related objects that the parent is subscribed to. None if it has no subscription."""
    managed_fields: Mapping[str, JsonObject]
    """Our entries in the `managedFields` of children that we applied server-side, by their UIDs."""
    part: str
    """Which part of the parent's work this is, if its kind divides it. Empty for the parent as a whole."""
    inputs: tuple[ObservedGroup, ...]
    """Objects that a kind's sync reads and does not write, by resource. Empty for kinds without inputs."""
    summary: JsonObject | None = None
    """What the watcher counted of the parent's parts. None for a part, and for kinds whose parents have none."""

    @property
    def uid(self) -> str:
        """The parent's UID."""
        return unstructured.uid(self.parent)

    @property
    def namespace(self) -> str:
        """The parent's namespace. Empty if it is cluster-scoped."""
        return unstructured.namespace(self.parent)

    @property
    def name(self) -> str:
        """The parent's name."""
        return unstructured.name(self.parent)

    @property
    def is_deleting(self) -> bool:
        """Whether the parent is being deleted."""
        return unstructured.is_deleting(self.parent)

    @property
    def has_finalizer(self) -> bool:
        """Whether the parent has our finalizer."""
        return self.controller.finalizer in unstructured.finalizers(self.parent)

    @property
    def is_finalizing(self) -> bool:
        """Whether the finalize hook is due: there is one, and the parent is being deleted or no longer selected."""
        return self.controller.hooks.finalize is not None and (self.is_deleting or not self.is_selected)

    def with_parent(self, parent: JsonObject) -> "Observed":
        """The same with another `parent`."""
        return self if parent is self.parent else replace(self, parent=parent)

    def with_selector(self, selector: Selector | None) -> "Observed":
        """The same with another `selector`."""
        return self if selector is self.selector else replace(self, selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestObjects:
    """The objects that a hook's request carries beside the parent: its claimed children, and the related objects."""

    children: tuple[ChildGroup, ...]
    related: tuple[ObservedGroup, ...]


MetadataChanges: TypeAlias = Mapping[str, str | None]
"""How a decorator's answer changes the parent's labels or annotations. None removes one; those not named stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer of a sync or finalize hook: well-formed, not yet validated against what the controller declares."""

    status: JsonObject | None
    children: tuple[JsonObject, ...]
    resync_after_seconds: float | None
    finalized: bool
    labels: MetadataChanges
    annotations: MetadataChanges
    unknown_keys: tuple[str, ...]
    """Keys of a loosely read answer that no field has: most likely misspelt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredChild:
    """A child that the hook desires. `obj` is what it answered, with namespace and tracking metadata filled in."""

    info: ResourceInfo
    method: UpdateMethod
    namespace: str
    name: str
    obj: JsonObject

    @property
    def rolls(self) -> bool:
        """Whether such children move from revision to revision, where the controller keeps revisions."""
        return UPDATE_METHODS[self.method].rolls

    def __str__(self) -> str:
        return f"{self.info.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.info.kind} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateChild:
    """Create `obj`, which has the controllerRef and the annotation of what was applied."""

    info: ResourceInfo
    obj: JsonObject
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateChild:
    """Replace a child by `obj`, which has the observed UID and resourceVersion: the write fails on any other object."""

    info: ResourceInfo
    obj: JsonObject
    reason: str
    observed: JsonObject | None = None
    """The child before the update, if no-op writes to it are to be remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChild:
    """Apply `obj`, the whole configuration of a child, on the API server.

    It is applied to the child that was `observed`. If that is None, the child must not exist yet.
    """

    info: ResourceInfo
    obj: JsonObject
    reason: str
    observed: JsonObject | None
    folded_managers: tuple[str, ...] | None = None
    """Whose fields become ours first, beside those that we wrote by updates: the managers whose names begin so. None:
    only an object with our annotation is looked at for such fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecreateChild:
    """Delete the child that was `observed` if the update would change it or is not allowed. Update it otherwise.

    A dry run on the API server decides. `obj` is what the update would write, `desired` is what would be created.
    """

    info: ResourceInfo
    obj: JsonObject
    desired: JsonObject
    reason: str
    observed: JsonObject
    is_applied: bool
    """Whether the update is a server-side apply rather than a replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChild:
    """Delete the child that was observed. Its UID is a precondition, so another object of the same name survives."""

    info: ResourceInfo
    obj: JsonObject
    reason: str
    successor: JsonObject | None = None
    """What is to be created in its place, if anything. The child stays if the API server would refuse that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Become the controller of an orphan. `obj` has the new controllerRef, and the observed UID and resourceVersion."""

    info: ResourceInfo
    obj: JsonObject
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Stop being the controller of a child. `obj` has no controllerRef, and the observed UID and resourceVersion."""

    info: ResourceInfo
    obj: JsonObject
    reason: str


ClaimAction: TypeAlias = Adopt | Release
ChildWrite: TypeAlias = CreateChild | UpdateChild | ApplyChild | RecreateChild
ChildAction: TypeAlias = ChildWrite | DeleteChild
Action: TypeAlias = ClaimAction | ChildAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do to the children. All deletions come before all other writes. Within each, the order has no meaning."""

    deletions: tuple[DeleteChild, ...] = ()
    writes: tuple[ChildWrite, ...] = ()

    def __iter__(self) -> Iterator[ChildAction]:
        """Every action, in order."""
        yield from self.deletions
        yield from self.writes

    def __len__(self) -> int:
        """The number of actions."""
        return len(self.deletions) + len(self.writes)


RevisionAction: TypeAlias = CreateChild | UpdateChild | DeleteChild
"""A write to a ControllerRevision, which is treated as a child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentEdit:
    """One write to the parent or to a subresource of it."""

    name: str
    mutate: Callable[[JsonObject], JsonObject | None]
    """The parent to write, made from the present one. None if there is nothing to change."""
    subresource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the end of a sync means for its job."""

    result: Result
    fault: AnyFault | None = None
    """Why the sync failed. None if it succeeded."""
    message: str = ""
    after_seconds: float | None = None

    @property
    def reason(self) -> str:
        """The fault as users see it. Empty if there is none."""
        return self.fault.reason if self.fault else ""

    @property
    def audience(self) -> Audience:
        """Who is told of the fault."""
        return self.fault.audience if self.fault else "nobody"
