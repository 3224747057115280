"""The steps of a sync, as values. A sync yields them, and its driver sends back their results.

A sync is a generator. It decides, and does nothing itself. The reconciler's driver carries the steps out, the dry run's
driver records what would be done, and a test answers them from a table. If a step fails, its error is raised at the
`yield`. The sync may catch it; otherwise it ends with it.

The functions at the end yield one step each and give its result a type: `effects = yield from claim_children(...)`.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from metaloop.common.api.hook import Hook
from metaloop.common.http.body import Body
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.component.cluster import Address, Cluster, KindName
from metaloop.reconciler.core.component.managed_types import ManagedType
from metaloop.reconciler.core.effects import Effects
from metaloop.reconciler.core.model import ChildGroup, ClaimAction, Observed, ParentEdit, Plan, RevisionAction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EditParent:
    """Edit the parent. Result: the parent as it is now; None if it no longer exists."""

    observed: Observed
    edit: ParentEdit


@dataclass(frozen=True, slots=True)
class ClaimChildren:
    """Adopt and release children. Result: the effects. Raises Conflict if the parent was deleted or replaced."""

    observed: Observed
    actions: Sequence[ClaimAction]


@dataclass(frozen=True, slots=True)
class ChooseApplyStrategy:
    """Choose how the parent's children are written. Result: the strategy. Raises InvalidSpec."""

    observed: Observed


@dataclass(frozen=True, slots=True)
class CallHook:
    """Call a hook with all bodies at once. They are named by revision. Result: the bodies of the answers, in order.

    Raises HookThrottled, HookFailed, Unavailable or InvalidSpec.
    """

    observed: Observed
    hook: Hook
    bodies: Mapping[str, Body]


@dataclass(frozen=True, slots=True)
class SubscribeRelated:
    """Subscribe the parent to related objects. Result: the objects that the queries select. Raises Unavailable."""

    fingerprint: str
    queries: Sequence[RelatedQuery] = ()


@dataclass(frozen=True, slots=True)
class WriteRevisions:
    """Write ControllerRevisions, in order. No result. Raises WritesFailed at the first failure."""

    observed: Observed
    actions: Sequence[RevisionAction]


@dataclass(frozen=True, slots=True)
class WriteChildren:
    """Carry out the part of a plan that the deletion guards allow. Result: the effects. What is held back is a failure.

    `children` are the parent's present ones. Raises InvalidSpec if the controller's own deletion limit is invalid.
    """

    observed: Observed
    plan: Plan
    children: tuple[ChildGroup, ...]
    acting_as: str = ""
    """The user on whose behalf they are written. Empty: our own."""


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record a Kubernetes Event. No result. It never fails."""

    regarding: JsonObject
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Resync:
    """Sync the parent again after this time, however this sync ends. The shortest time that is asked for counts."""

    after_seconds: float


@dataclass(frozen=True, slots=True)
class ReportUnknownKeys:
    """Report keys in an answer that no field has."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReportRivals:
    """Report which parts of the same parent hold what this part needs. No result."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountPass:
    """Count a pass over a component. No result."""

    state: str
    reason: str
    is_change: bool
    """Whether the state was another one before."""
    ready_after_seconds: float | None = None
    """How long it took until all objects were ready, if they are now and were not before."""


@dataclass(frozen=True, slots=True)
class PauseAnnounced:
    """It was announced that a parent is paused."""

    uid: str


@dataclass(frozen=True, slots=True)
class ConditionsUnsupported:
    """Objects of this resource can't store a condition in their status: it is dropped or refused."""

    resource: ResourceId


@dataclass(frozen=True, slots=True)
class TombstoneEditsIgnored:
    """It was announced that edits in answers about a parent are ignored."""

    uid: str


Fact: TypeAlias = PauseAnnounced | ConditionsUnsupported | TombstoneEditsIgnored
"""What a process remembers from one sync to the next. Losing a fact costs one write or event, and nothing else."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Look a fact up. Result: whether it is known."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Learn:
    """Remember a fact. No result."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget a fact. No result."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class DescribeCluster:
    """Find out which of these kinds the API server serves. Result: the Cluster. Raises Unavailable."""

    kinds: frozenset[KindName]


@dataclass(frozen=True, slots=True)
class ReadObjects:
    """Read live objects. Result: the objects in order, None for each that does not exist. Raises what a read raises."""

    addresses: Sequence[Address]
    acting_as: str = ""
    """The user on whose behalf they are read. Empty: our own."""


@dataclass(frozen=True, slots=True)
class FindForeign:
    """Find instances of types that don't have the label. Result: the names of the first ones, for messages."""

    types: tuple[ManagedType, ...]
    label: str
    value: str
    acting_as: str = ""
    """The user on whose behalf they are looked for. Empty: our own."""


ClusterStep: TypeAlias = DescribeCluster | ReadObjects | FindForeign
"""A step that only asks the API server."""
LocalStep: TypeAlias = RecordEvent | Resync | ReportUnknownKeys | ReportRivals | CountPass | Recall | Learn | Forget
"""A step that the driver carries out without waiting for anything."""
Step: TypeAlias = (
    EditParent
    | ClaimChildren
    | ChooseApplyStrategy
    | CallHook
    | SubscribeRelated
    | WriteRevisions
    | WriteChildren
    | ClusterStep
    | LocalStep
)
Steps: TypeAlias = Generator[Step, Any, T]
"""A sync or a part of one: it yields steps and returns a result."""


def edit_parent(observed: Observed, edit: ParentEdit) -> Steps[JsonObject | None]:
    """See EditParent."""
    return (yield EditParent(observed, edit))


def claim_children(observed: Observed, actions: Sequence[ClaimAction]) -> Steps[Effects]:
    """See ClaimChildren."""
    return (yield ClaimChildren(observed, actions))


def choose_apply_strategy(observed: Observed) -> Steps[ApplyStrategy]:
    """See ChooseApplyStrategy."""
    return (yield ChooseApplyStrategy(observed))


def call_hook(observed: Observed, hook: Hook, bodies: Mapping[str, Body]) -> Steps[list[bytes]]:
    """See CallHook."""
    return (yield CallHook(observed, hook, bodies))


def subscribe_related(fingerprint: str, queries: Sequence[RelatedQuery] = ()) -> Steps[Related]:
    """See SubscribeRelated."""
    return (yield SubscribeRelated(fingerprint, queries))


def write_children(observed: Observed, plan: Plan, children: tuple[ChildGroup, ...], *, acting_as: str = "") -> Steps[Effects]:
    """See WriteChildren."""
    return (yield WriteChildren(observed, plan, children, acting_as))


def describe_cluster(kinds: Iterable[KindName]) -> Steps[Cluster]:
    """See DescribeCluster."""
    return (yield DescribeCluster(frozenset(kinds)))


def read_objects(addresses: Sequence[Address], *, acting_as: str = "") -> Steps[list[JsonObject | None]]:
    """See ReadObjects. Nothing is asked if there is nothing to read."""
    return (yield ReadObjects(addresses, acting_as)) if addresses else []


def find_foreign(types: Iterable[ManagedType], *, label: str, value: str, acting_as: str = "") -> Steps[list[str]]:
    """See FindForeign. Nothing is asked if there are no types."""
    listed = tuple(types)
    return (yield FindForeign(listed, label, value, acting_as)) if listed else []


def recall(fact: Fact) -> Steps[bool]:
    """See Recall."""
    return (yield Recall(fact))
