"""A driver for tests: a script has the result of each step. Nothing is read, called or written."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from builders import DYNAMIC_APPLY

from metaloop.common.errors import MetaloopError
from metaloop.common.http.body import whole
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.common.observation import Related
from metaloop.reconciler.core.effects import VERBS, Done, Effects
from metaloop.reconciler.core.model import Action, Observed, ParentEdit, RevisionAction
from metaloop.reconciler.core.pipeline import sync
from metaloop.reconciler.core.steps import (
    CallHook,
    ChooseApplyStrategy,
    ClaimChildren,
    CountPass,
    DescribeCluster,
    EditParent,
    Fact,
    FindForeign,
    Forget,
    Learn,
    ReadObjects,
    Recall,
    RecordEvent,
    ReportRivals,
    ReportUnknownKeys,
    Resync,
    Step,
    Steps,
    SubscribeRelated,
    WriteChildren,
    WriteRevisions,
)
from metaloop.reconciler.core.variant import Variant

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Hook = Callable[[JsonObject], JsonObject]


def nothing(_: JsonObject) -> JsonObject:
    """The answer of a hook that desires no children."""
    return {}


@dataclass(kw_only=True)
class Script:
    """The result of each step of one sync. By default, each step succeeds."""

    hook: Hook = nothing
    rules: Hook = nothing
    """The customize hook."""
    related: Related = field(default_factory=lambda: Related(fingerprint=""))
    """The related objects that are found."""
    known: frozenset[Fact] = frozenset()
    """Facts that earlier syncs learned."""
    failing: Mapping[str, MetaloopError] = field(default_factory=dict[str, MetaloopError])
    """Errors that steps fail with, by the line of the step."""
    claimed: Effects | None = None
    """The effects of claiming children."""
    written: Effects | None = None
    """The effects of writing children."""
    edited: Callable[[ParentEdit, JsonObject], JsonObject | None] = lambda edit, parent: edit.mutate(parent) or parent
    """The parent after an edit."""

    def result(self, step: Step) -> object:  # noqa: PLR0911 - one for each kind of step
        """The result of a step. Raises the error that the script has for it."""
        if failure := self.failing.get(line(step)):
            raise failure
        match step:
            case EditParent(observed, edit):
                return self.edited(edit, observed.parent)
            case ClaimChildren(_, actions):
                return self.claimed or _all_done(actions)
            case ChooseApplyStrategy():
                return DYNAMIC_APPLY
            case CallHook(_, hook, bodies):
                answer = self.rules if hook.name == "customize" else self.hook
                return [dumps(answer(loads(whole(body)))) for body in bodies.values()]
            case SubscribeRelated(fingerprint):
                return Related(fingerprint=fingerprint, groups=self.related.groups, unknown=self.related.unknown)
            case WriteChildren(_, plan):
                return self.written or _all_done([*plan])
            case Recall(fact):
                return fact in self.known
            case WriteRevisions() | RecordEvent() | Resync() | ReportUnknownKeys() | ReportRivals() | CountPass() | Learn() | Forget():
                return None


@dataclass(frozen=True, kw_only=True)
class Played:
    """The steps of a sync, and how it ended."""

    steps: Sequence[Step]
    failure: MetaloopError | None

    @property
    def lines(self) -> list[str]:
        """The lines of the steps, without Forget, which every sync begins with."""
        return [line(step) for step in self.steps if not isinstance(step, Forget)]

    @property
    def asked(self) -> list[JsonObject]:
        """The requests that the hooks were sent, in order."""
        return [loads(whole(body)) for step in self.steps if isinstance(step, CallHook) for body in step.bodies.values()]


def play(observed: Observed, variant: Variant, script: Script | None = None) -> Played:
    """The sync of one parent, with results from the script."""
    return played(sync(observed, NOW, variant=variant), script)


def played(steps: Steps[None], script: Script | None = None) -> Played:
    """A sync, with results from the script."""
    of, taken = script or Script(), list[Step]()
    try:
        step = next(steps)
        while True:
            taken.append(step)
            try:
                result = of.result(step)
            except MetaloopError as failure:
                step = steps.throw(failure)
            else:
                step = steps.send(result)
    except StopIteration:
        return Played(steps=taken, failure=None)
    except MetaloopError as failure:
        return Played(steps=taken, failure=failure)


def line(step: Step) -> str:  # noqa: C901, PLR0911, PLR0912 - one for each kind of step
    """The line of a step: its name, and what it is about."""
    match step:
        case EditParent(observed, edit):
            is_needed = edit.mutate(observed.parent) is not None
            return f"parent: {edit.name.lower()}" if is_needed else f"parent: {edit.name.lower()} is as it should be"
        case ClaimChildren(_, actions):
            return _about("claim", actions)
        case ChooseApplyStrategy():
            return "choose how to apply"
        case CallHook(_, hook, bodies):
            return f"call {hook.name}" if len(bodies) == 1 else f"call {hook.name}, {len(bodies)} times"
        case SubscribeRelated(fingerprint, queries):
            return f"subscribe to {len(queries)} queries" if fingerprint else f"subscribe to {len(queries)} queries for now"
        case DescribeCluster(kinds):
            return f"describe the cluster: {', '.join(sorted(kind for _, kind in kinds))}"
        case ReadObjects(addresses):
            return f"read {', '.join(address.name for address in addresses)}"
        case FindForeign(types):
            return f"find instances of {', '.join(map(str, types))}"
        case WriteRevisions(_, actions):
            return _about("revisions", actions)
        case WriteChildren(_, plan, _):
            return _about("children", [*plan])
        case RecordEvent(_, event_type, reason, _):
            return f"event: {event_type} {reason}"
        case Resync(seconds):
            return f"resync after {seconds:g} s"
        case ReportUnknownKeys(keys):
            return f"unknown keys: {', '.join(keys)}"
        case ReportRivals(parts):
            return f"rivals: {', '.join(parts)}"
        case CountPass(state=state, reason=reason):
            return f"pass: {state} {reason}"
        case Recall(fact) | Learn(fact) | Forget(fact):
            return f"{type(step).__name__.lower()} {type(fact).__name__}"


def _all_done(actions: Sequence[Action]) -> Effects:
    return Effects(done=tuple([Done(action=action, written=action.obj) for action in actions]))


def _about(what: str, actions: Sequence[Action | RevisionAction]) -> str:
    return f"{what}: {', '.join(_spelled(actions))}"


def _spelled(actions: Sequence[Action | RevisionAction]) -> Iterator[str]:
    for action in actions:
        yield f"{VERBS[type(action)]} {unstructured.name(action.obj)}"
