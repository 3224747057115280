"""What a sync asks of whoever drives it: each step is a value, and its result is sent back.

A sync is a generator that yields steps. It decides, and does nothing itself: the reconciler's driver carries the steps out, the dry run's
writes down what would be done, and a test answers them from a table. A step that fails is raised at the `yield`; the sync may decide what
that means, and ends with it otherwise.

The functions below yield one step each and give its result the right type: `children = yield from claim_children(...)`.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from metaloop.common.api.hook import Hook
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.effects import Effects
from metaloop.reconciler.core.model import ChildGroup, ClaimAction, Observed, ParentEdit, Plan, RevisionAction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EditParent:
    """Make of the parent what `edit` makes of it. Result: the parent as it then is, None where there is no such parent any more."""

    observed: Observed
    edit: ParentEdit


@dataclass(frozen=True, slots=True)
class ClaimChildren:
    """Adopt and release. Result: the effects. Raises Conflict where the parent turns out to be another, or going."""

    observed: Observed
    actions: Sequence[ClaimAction]


@dataclass(frozen=True, slots=True)
class ChooseApplyStrategy:
    """Find out how this parent's children are written. Result: the strategy. Raises InvalidSpec."""

    observed: Observed


@dataclass(frozen=True, slots=True)
class CallHook:
    """Send each body to a hook, all at once; each stands under the name of its revision. Result: the bodies of the answers, in their order.

    Raises HookThrottled, HookFailed, Unavailable or InvalidSpec.
    """

    observed: Observed
    hook: Hook
    bodies: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class SubscribeRelated:
    """Have the watcher follow these related objects for the parent from now on. Result: what they select. Raises Unavailable."""

    fingerprint: str
    queries: Sequence[RelatedQuery] = ()


@dataclass(frozen=True, slots=True)
class WriteRevisions:
    """Write ControllerRevisions, in order. No result. Raises WritesFailed at the first that fails."""

    observed: Observed
    actions: Sequence[RevisionAction]


@dataclass(frozen=True, slots=True)
class WriteChildren:
    """Carry a plan out, as far as the deletion guards let it pass. Result: the effects; what is held back is a failure among them.

    `children` are those that the parent has. Raises InvalidSpec where the controller's own limit makes no sense.
    """

    observed: Observed
    plan: Plan
    children: tuple[ChildGroup, ...]


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Record a Kubernetes Event. No result; never fails."""

    regarding: JsonObject
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Resync:
    """Have the parent synced again so soon, or sooner where that was asked for already: whatever comes of the rest of the sync."""

    after_seconds: float


@dataclass(frozen=True, slots=True)
class ReportUnknownKeys:
    """Tell of keys in an answer that nobody reads."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PauseAnnounced:
    """The fact that somebody was told that a parent is paused."""

    uid: str


@dataclass(frozen=True, slots=True)
class ConditionsUnsupported:
    """The fact that the status of such objects loses a condition, or refuses it."""

    resource: ResourceId


Fact: TypeAlias = PauseAnnounced | ConditionsUnsupported
"""What this process remembers from one sync to the next. Forgetting one costs a write or an event, and nothing else."""


@dataclass(frozen=True, slots=True)
class Recall:
    """Result: whether a fact was learned."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Learn:
    """Remember a fact."""

    fact: Fact


@dataclass(frozen=True, slots=True)
class Forget:
    """Remember a fact no longer."""

    fact: Fact


LocalStep: TypeAlias = RecordEvent | Resync | ReportUnknownKeys | Recall | Learn | Forget
"""A step that waits for nobody."""
Step: TypeAlias = (
    EditParent | ClaimChildren | ChooseApplyStrategy | CallHook | SubscribeRelated | WriteRevisions | WriteChildren | LocalStep
)
Steps: TypeAlias = Generator[Step, Any, T]
"""A part of a sync: the steps that it takes, and what it comes to."""


def edit_parent(observed: Observed, edit: ParentEdit) -> Steps[JsonObject | None]:
    """See EditParent."""
    return (yield EditParent(observed, edit))


def claim_children(observed: Observed, actions: Sequence[ClaimAction]) -> Steps[Effects]:
    """See ClaimChildren."""
    return (yield ClaimChildren(observed, actions))


def choose_apply_strategy(observed: Observed) -> Steps[ApplyStrategy]:
    """See ChooseApplyStrategy."""
    return (yield ChooseApplyStrategy(observed))


def call_hook(observed: Observed, hook: Hook, bodies: Mapping[str, bytes]) -> Steps[list[bytes]]:
    """See CallHook."""
    return (yield CallHook(observed, hook, bodies))


def subscribe_related(fingerprint: str, queries: Sequence[RelatedQuery] = ()) -> Steps[Related]:
    """See SubscribeRelated."""
    return (yield SubscribeRelated(fingerprint, queries))


def write_children(observed: Observed, plan: Plan, children: tuple[ChildGroup, ...]) -> Steps[Effects]:
    """See WriteChildren."""
    return (yield WriteChildren(observed, plan, children))


def recall(fact: Fact) -> Steps[bool]:
    """See Recall."""
    return (yield Recall(fact))
