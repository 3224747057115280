"""The values of the pipeline: `Observed`, `Desired`, `Action`, `Plan`, `Outcome`."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    """The children of one declared resource (or its candidates for children, before they are claimed), and how drifted ones are updated."""

    info: ResourceInfo
    method: UpdateMethod
    objects: tuple[JsonObject, ...]

    @property
    def rolls(self) -> bool:
        """Whether such children move from revision to revision, where the controller keeps revisions."""
        return UPDATE_METHODS[self.method].rolls


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """A parent as the watcher's cache saw it, with what is known around it. `groups` has one for each declared child resource, in their order."""

    controller: Controller
    info: ResourceInfo
    parent: JsonObject
    groups: tuple[ChildGroup, ...]
    is_selected: bool = True
    """Whether the controller's own selectors still select the parent; one that they don't is ours only while it has our finalizer."""
    selector: Selector | None = None
    """Which labels the parent's children have; None where children are known by their owner alone, and none is ever adopted."""
    revisions: tuple[JsonObject, ...] = ()
    """Candidates for the ControllerRevisions of the parent."""
    related: Related | None = None
    """What the watcher selected by the queries that it remembers; None where it remembers none."""
    managed: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Our entries in the `managedFields` of children that we applied server-side, by their UIDs."""
    part: str = ""
    """Which part of the parent's work this is, where its kind divides it; empty for the parent as a whole."""

    @property
    def uid(self) -> str:
        """The parent's UID: who it is, whatever its name."""
        return unstructured.uid(self.parent)

    @property
    def namespace(self) -> str:
        """The parent's namespace, empty where it is cluster-scoped."""
        return unstructured.namespace(self.parent)

    @property
    def name(self) -> str:
        """The parent's name."""
        return unstructured.name(self.parent)

    @property
    def is_deleting(self) -> bool:
        """Whether the parent's deletion was asked for."""
        return unstructured.is_deleting(self.parent)

    @property
    def has_finalizer(self) -> bool:
        """Whether the parent has our finalizer."""
        return self.controller.finalizer in unstructured.finalizers(self.parent)

    @property
    def is_finalizing(self) -> bool:
        """Whether the time to finalize the parent has come."""
        return self.controller.hooks.finalize is not None and (self.is_deleting or not self.is_selected)

    def with_parent(self, parent: JsonObject) -> "Observed":
        """The same around another `parent`; itself where that is the very parent that it has, as it nearly always is."""
        return self if parent is self.parent else replace(self, parent=parent)

    def with_selector(self, selector: Selector | None) -> "Observed":
        """The same with a `selector`."""
        return self if selector is self.selector else replace(self, selector=selector)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestObjects:
    """What a hook is shown beside the parent: its claimed children, and the related objects that it asked for."""

    children: tuple[ChildGroup, ...]
    related: tuple[ObservedGroup, ...] = ()


MetadataChanges: TypeAlias = Mapping[str, str | None]
"""What a decorator wants of its parent's labels or annotations: None takes one away, the unmentioned stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a sync or finalize hook answered, well-formed but not yet held against what the controller declares."""

    status: JsonObject | None
    children: tuple[JsonObject, ...]
    resync_after_seconds: float | None
    finalized: bool
    labels: MetadataChanges = field(default_factory=dict[str, str | None])
    annotations: MetadataChanges = field(default_factory=dict[str, str | None])
    unknown_keys: tuple[str, ...] = ()
    """Keys that a loose answer had and nobody reads: most likely misspelt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredChild:
    """One child that ought to exist: `obj` has its namespace and labels, and nothing that is not the hook's to say."""

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
    """Create `obj`, which carries the controllerRef and what was applied."""

    info: ResourceInfo
    obj: JsonObject
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateChild:
    """Replace a child by `obj`, which carries the UID and resourceVersion that were observed: the write fails on any other object."""

    info: ResourceInfo
    obj: JsonObject
    reason: str
    observed: JsonObject | None = None
    """What it was made of, where it is worth remembering that the write changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyChild:
    """Have `obj`, all that is desired of a child, applied by the API server: to what was `observed`, or to a child that must not be there yet."""

    info: ResourceInfo
    obj: JsonObject
    reason: str
    observed: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecreateChild:
    """Delete the child that was `observed`, if the API server says that the update would change it, or that it can't be changed so; else update it.

    `obj` is what the update would write, `desired` what would be created.
    """

    info: ResourceInfo
    obj: JsonObject
    desired: JsonObject
    reason: str
    observed: JsonObject
    is_applied: bool
    """Whether the update is a server-side apply, rather than a replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteChild:
    """Delete the child that was observed, with its UID as the precondition: a namesake survives."""

    info: ResourceInfo
    obj: JsonObject
    reason: str
    successor: JsonObject | None = None
    """What is to be created in its place, if anything: where the API server would refuse that, the child stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Become the controller of an orphan: `obj` says so, and carries the UID and resourceVersion that were observed."""

    info: ResourceInfo
    obj: JsonObject
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Stop being the controller of a child: `obj` says so, and carries the UID and resourceVersion that were observed."""

    info: ResourceInfo
    obj: JsonObject
    reason: str


ClaimAction: TypeAlias = Adopt | Release
ChildWrite: TypeAlias = CreateChild | UpdateChild | ApplyChild | RecreateChild
ChildAction: TypeAlias = ChildWrite | DeleteChild
Action: TypeAlias = ClaimAction | ChildAction


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do to the children. All deletions come before all other writes; within each, order carries no meaning."""

    deletions: tuple[DeleteChild, ...] = ()
    writes: tuple[ChildWrite, ...] = ()

    def __iter__(self) -> Iterator[ChildAction]:
        """Every action, in order."""
        yield from self.deletions
        yield from self.writes

    def __len__(self) -> int:
        """How many actions there are."""
        return len(self.deletions) + len(self.writes)


RevisionAction: TypeAlias = CreateChild | UpdateChild | DeleteChild
"""A write to a ControllerRevision, which is an object like any child."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentEdit:
    """One write to the parent, or to a subresource of it."""

    name: str
    make: Callable[[JsonObject], JsonObject | None]
    """The parent as it is to become, made of the parent as it is; None where it is so already."""
    subresource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the end of a sync means for its job."""

    result: Result
    fault: AnyFault | None = None
    """Why the sync did not come to its end; None if it did."""
    message: str = ""
    after_seconds: float | None = None

    @property
    def reason(self) -> str:
        """What users read of the fault; empty without one."""
        return self.fault.reason if self.fault else ""

    @property
    def audience(self) -> Audience:
        """Who hears of it."""
        return self.fault.audience if self.fault else "nobody"
