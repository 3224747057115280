"""Rolling update: which revision owns which child now, the next to move, or what it waits for.

Each rolling child that the latest answer desires follows a revision: what *that* revision's hook answer says is what the child is to be. A rollout moves children,
one at a time, to the latest revision. Who follows whom is written to the ControllerRevisions before any child is touched, so a rollout goes on where it stood,
whoever dies in between.

Rules
    1. What the latest answer no longer desires follows nobody, and goes. A child that is not there and follows nobody is new: it follows the latest at once.
       So does one that is already as the latest desires it: there is nothing to roll.
    2. A child that is there, follows nobody and differs is *held*: left exactly as it is until its turn. (Somebody deleted its revision, it was adopted, or its
       kind was not updated by rolling before.)
    3. Nothing moves while a child of the latest revision is in problem: missing, on its way out, not yet as desired, its status not yet of the present generation,
       or a status check not passed.
    4. Otherwise one child moves: the first in the order of the latest answer. One in problem goes before the others: there is least to lose with it, and a second
       one would be in problem besides.
    5. A former child that is missing before its turn comes back as its own revision desires it, for as long as rule 3 holds the rollout.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from metaloop.common.api.revision import REVISIONS, ClaimedChild, children_field, claimed_by, patch_of
from metaloop.common.api.rules import ChildRule
from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.model import Answer, ChildGroup, CreateChild, DeleteChild, DesiredChild, Observed, RevisionAction, UpdateChild
from metaloop.reconciler.core.rollout.readiness import why_not_ready
from metaloop.reconciler.core.rollout.revisions import Revision, RevisionHistory, new_revision

Identity: TypeAlias = tuple[ResourceId, str, str]
"""A child: its resource, namespace and name."""

CONDITION: Final = "Updated"
"""The type of the condition that tells how a rollout stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredByRevision:
    """The children that the hook desires for one live revision of the parent."""

    revision: Revision
    children: tuple[DesiredChild, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The next step of a rollout, or that there is none."""

    desired: tuple[DesiredChild, ...]
    """All desired children, each as the revision that it follows says."""
    revisions: tuple[RevisionAction, ...]
    """What to write to the revisions, in order, before any child is touched: what a child leaves comes after where it goes."""
    condition: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRules:
    """By which rules a parent's children roll."""

    strategy: ApplyStrategy
    history: RevisionHistory
    unused: Sequence[JsonObject] = ()
    """Stored revisions that no child follows: they are removed by the way."""


def rollout_of(observed: Observed, children: Sequence[ChildGroup], answered: Sequence[DesiredByRevision], rules: RolloutRules) -> Rollout:
    """The next step towards the latest revision, which stands first in `answered`."""
    latest = answered[0].revision
    world = _World.of(observed, children, strategy=rules.strategy)
    former = [_Former(revision=each.revision, desired={_identity(child): child for child in each.children}) for each in answered[1:]]
    rolling = [world.placed(child, latest, former) for child in answered[0].children if child.rolls]
    next_one, condition = world.next_step(rolling, latest)
    after = [replace(child, follows=latest, desired=child.latest) if child is next_one else child for child in rolling]
    by_child = {_identity(child.latest): child.desired for child in after}
    return Rollout(
        desired=tuple([by_child.get(_identity(child), child) for child in answered[0].children]),
        revisions=tuple(_writes(observed, [each.revision for each in answered], after, rules)),
        condition=condition,
    )


def combined_answer(answers: Sequence[Answer]) -> Answer:
    """What all live revisions' answers say together: the latest's status and children, the earliest resync, finalized only if all are."""
    if len(answers) == 1:
        return answers[0]
    resyncs = [answer.resync_after_seconds for answer in answers if answer.resync_after_seconds is not None]
    return replace(
        answers[0],
        resync_after_seconds=min(resyncs, default=None),
        finalized=all(answer.finalized for answer in answers),
        unknown_keys=tuple(sorted({key for answer in answers for key in answer.unknown_keys})),
    )


def with_condition(answer: Answer, condition: JsonObject) -> Answer:
    """`answer` with the condition in its status, in the place of one that the hook may have given; conditions that are no list are the hook's own affair."""
    status = answer.status or {}
    conditions = status.get("conditions")
    if conditions is not None and not is_array(conditions):
        return answer
    others = [each for each in conditions or () if not (is_object(each) and each.get("type") == CONDITION)]
    return replace(answer, status={**status, "conditions": [*others, condition]})


# -- where each child stands ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    """A rolling child that the latest answer desires."""

    key: ClaimedChild
    follows: Revision | None
    """None for one that is held."""
    desired: DesiredChild
    """What it is to be by the revision that it follows."""
    latest: DesiredChild

    def __str__(self) -> str:
        return f"{self.key.kind} {self.key.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Former:
    """An older revision, and what it desires."""

    revision: Revision
    desired: Mapping[Identity, DesiredChild]


@dataclass(frozen=True, slots=True, kw_only=True)
class _World:
    """What is there, and by which measure it is compared with what is desired."""

    is_parent_namespaced: bool
    rules: Mapping[ResourceId, ChildRule]
    there: Mapping[Identity, JsonObject]
    strategy: ApplyStrategy

    @classmethod
    def of(cls, observed: Observed, children: Sequence[ChildGroup], *, strategy: ApplyStrategy) -> "_World":
        there = {(group.info.id, unstructured.namespace(obj), unstructured.name(obj)): obj for group in children for obj in group.objects}
        rules = {rule.resource: rule for rule in observed.controller.children}
        return cls(is_parent_namespaced=bool(observed.namespace), rules=rules, there=there, strategy=strategy)

    def placed(self, wanted: DesiredChild, latest: Revision, former: Sequence[_Former]) -> _Child:
        """Which revision a child follows that the latest answer wants to be so."""
        key, identity = self._key(wanted), _identity(wanted)
        there = self.there.get(identity)
        if key in latest.claims or (there is not None and not self.strategy.applied(there, wanted).is_changed):
            return _Child(key=key, follows=latest, desired=wanted, latest=wanted)
        for each in former:
            if key in each.revision.claims and identity in each.desired:
                return _Child(key=key, follows=each.revision, desired=each.desired[identity], latest=wanted)
        if there is None:
            return _Child(key=key, follows=latest, desired=wanted, latest=wanted)
        return _Child(key=key, follows=None, desired=replace(wanted, method="OnDelete"), latest=wanted)

    def next_step(self, rolling: Sequence[_Child], latest: Revision) -> tuple[_Child | None, JsonObject]:
        """The child to move now, if one may be moved; and the condition that tells so."""
        former = [child for child in rolling if child.follows is not latest]
        if not former:
            return None, _condition("True", "OnLatestRevision", f"on latest ControllerRevision {latest.name}")
        moved = (child for child in rolling if child.follows is latest)
        problem = next(filter(None, map(self._problem, moved)), "")
        if problem:
            return None, _condition("False", "RolloutWaiting", problem)
        mover = next(filter(self._problem, former), former[0])
        return mover, _condition("False", "RolloutProgressing", f"updating {mover}")

    def _problem(self, child: _Child) -> str:
        there = self.there.get(_identity(child.latest))
        differs = there is not None and child.follows is not None and self.strategy.applied(there, child.desired).is_changed
        problem = why_not_ready(there, self.rules[child.latest.info.id]) or ("is not yet as desired" if differs else "")
        return f"{child} {problem}" if problem else ""

    def _key(self, child: DesiredChild) -> ClaimedChild:
        name = f"{child.namespace}/{child.name}" if child.namespace and not self.is_parent_namespaced else child.name
        return ClaimedChild(child.info.group, child.info.kind, name)


def _identity(child: DesiredChild) -> Identity:
    return child.info.id, child.namespace, child.name


# -- what is written of it -----------------------------------------------------------------------------------------------------------


def _writes(observed: Observed, live: Sequence[Revision], rolling: Iterable[_Child], rules: RolloutRules) -> Iterator[RevisionAction]:
    followers: dict[str, set[ClaimedChild]] = {revision.name: set() for revision in live}
    for child in rolling:
        if child.follows is not None:
            followers[child.follows.name].add(child.key)
    latest, *older = live
    for revision in (latest, *(each for each in older if followers[each.name])):
        write = _write(observed, revision, followers[revision.name], history=rules.history)
        if write is not None:
            yield write
    left = [each.stored for each in older if not followers[each.name] and each.stored is not None]
    for stored in (*left, *rules.unused):
        if not unstructured.is_deleting(stored):
            yield DeleteChild(info=REVISIONS, obj=stored, reason="no child follows this revision any more")


def _write(
    observed: Observed, revision: Revision, followers: Iterable[ClaimedChild], *, history: RevisionHistory
) -> CreateChild | UpdateChild | None:
    claims = frozenset(followers)
    if revision.stored is None:
        return CreateChild(
            info=REVISIONS, obj=new_revision(observed, revision, claims, history=history), reason="the parent has a new revision"
        )
    if claimed_by(revision.stored) == claims and same(patch_of(revision.stored), revision.patch):
        return None
    changed: JsonObject = {**revision.stored, "parentPatch": revision.patch, "children": children_field(claims)}
    return UpdateChild(info=REVISIONS, obj=changed, reason="other children follow this revision")


def _condition(status: Literal["True", "False"], reason: str, message: str) -> JsonObject:
    return {"type": CONDITION, "status": status, "reason": reason, "message": message}
