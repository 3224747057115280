"""Rolling update: which revision each child follows, and which child moves next or what the rollout waits for.

Each rolling child that the latest answer desires follows a revision. The answer for *that* revision says what the child
should be. A rollout moves the children to the latest revision, one at a time. Which child follows which revision is
written to the ControllerRevisions before any child is touched. So a rollout continues where it was, whoever dies in
between.

Rules
    1. A child that the latest answer no longer desires follows no revision, and is deleted. A child that does not exist
       and follows no revision is new, and follows the latest one at once. So does a child that is already as the latest
       answer desires it: there is nothing to roll.
    2. A child that exists, follows no revision and differs from the latest answer is *held*: it stays exactly as it is
       until its turn. (Its revision was deleted, it was adopted, or its kind did not roll before.)
    3. No child moves while one that follows the latest revision is not ready: it is missing, being deleted, not yet as
       desired, its status is not of the present generation, or a status check fails.
    4. Otherwise one child moves: the first one in the order of the latest answer. A child that is not ready goes before
       the others. This risks least, since no second child becomes unready.
    5. An outdated child that is missing is created again as its own revision desires it, for as long as rule 3 holds
       the rollout back.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
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
"""The resource, namespace and name of a child."""

CONDITION: Final = "Updated"
"""The type of the condition that shows the progress of a rollout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredByRevision:
    """The children that the hook desires for one live revision of the parent."""

    revision: Revision
    children: tuple[DesiredChild, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """The next step of a rollout, if there is one."""

    desired: tuple[DesiredChild, ...]
    """All desired children, each as its revision desires it."""
    revisions: tuple[RevisionAction, ...]
    """The writes to revisions, in order. A child is added to its new revision before it is removed from the old one."""
    condition: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRules:
    """The rules by which a parent's children roll."""

    strategy: ApplyStrategy
    history: RevisionHistory
    unused: Sequence[JsonObject]
    """Stored revisions that no child follows. They are deleted."""


def rollout_of(observed: Observed, children: Sequence[ChildGroup], answered: Sequence[DesiredByRevision], rules: RolloutRules) -> Rollout:
    """The next step towards the latest revision, which is the first in `answered`."""
    latest = answered[0].revision
    existing = _ExistingChildren.of(observed, children, strategy=rules.strategy)
    older = [_OlderRevision(revision=each.revision, desired={_identity(child): child for child in each.children}) for each in answered[1:]]
    rolling = [existing.assigned(child, latest, older) for child in answered[0].children if child.rolls]
    next_child, condition = existing.next_step(rolling, latest)
    after = [replace(child, follows=latest, desired=child.latest) if child is next_child else child for child in rolling]
    desired = {_identity(child.latest): child.desired for child in after}
    return Rollout(
        desired=tuple([desired.get(_identity(child), child) for child in answered[0].children]),
        revisions=tuple(_writes(observed, [each.revision for each in answered], after, rules)),
        condition=condition,
    )


def combined_answer(answers: Sequence[Answer]) -> Answer:
    """The answers for all live revisions as one.

    It has the status and the children of the latest, and the earliest resync. It is finalized only if all are.
    """
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
    """`answer` with the condition in its status, in place of one of this type from the hook.

    If the hook's `conditions` are not a list, the status stays as it is.
    """
    status = answer.status or {}
    conditions = status.get("conditions")
    if conditions is not None and not is_array(conditions):
        return answer
    others = [each for each in conditions or () if not (is_object(each) and each.get("type") == CONDITION)]
    return replace(answer, status={**status, "conditions": [*others, condition]})


# -- the revision of each child ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    """A rolling child that the latest answer desires."""

    key: ClaimedChild
    follows: Revision | None
    """None if the child is held."""
    desired: DesiredChild
    """The child as the revision that it follows desires it."""
    latest: DesiredChild
    """The child as the latest revision desires it."""

    def __str__(self) -> str:
        return f"{self.key.kind} {self.key.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _OlderRevision:
    """An older revision, and the children that the hook desires for it."""

    revision: Revision
    desired: Mapping[Identity, DesiredChild]


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExistingChildren:
    """The children that exist, and the rules by which they are compared with the desired ones."""

    is_parent_namespaced: bool
    rules: Mapping[ResourceId, ChildRule]
    children: Mapping[Identity, JsonObject]
    strategy: ApplyStrategy

    @classmethod
    def of(cls, observed: Observed, groups: Sequence[ChildGroup], *, strategy: ApplyStrategy) -> "_ExistingChildren":
        children = {(group.info.id, unstructured.namespace(obj), unstructured.name(obj)): obj for group in groups for obj in group.objects}
        rules = {rule.resource: rule for rule in observed.controller.children}
        return cls(is_parent_namespaced=bool(observed.namespace), rules=rules, children=children, strategy=strategy)

    def assigned(self, desired: DesiredChild, latest: Revision, older: Sequence[_OlderRevision]) -> _Child:
        """A child that the latest answer desires, with the revision that it follows."""
        key, identity = self._key(desired), _identity(desired)
        existing = self.children.get(identity)
        if key in latest.claims or (existing is not None and not self.strategy.applied(existing, desired).is_changed):
            return _Child(key=key, follows=latest, desired=desired, latest=desired)
        for each in older:
            if key in each.revision.claims and identity in each.desired:
                return _Child(key=key, follows=each.revision, desired=each.desired[identity], latest=desired)
        if existing is None:
            return _Child(key=key, follows=latest, desired=desired, latest=desired)
        return _Child(key=key, follows=None, desired=replace(desired, method="OnDelete"), latest=desired)

    def next_step(self, rolling: Sequence[_Child], latest: Revision) -> tuple[_Child | None, JsonObject]:
        """The child to move now, if one may move, and the condition that says so."""
        outdated = [child for child in rolling if child.follows is not latest]
        if not outdated:
            return None, _condition("True", "OnLatestRevision", f"on latest ControllerRevision {latest.name}")
        updated = (child for child in rolling if child.follows is latest)
        problem = next(filter(None, map(self._problem, updated)), "")
        if problem:
            return None, _condition("False", "RolloutWaiting", problem)
        next_child = next(filter(self._problem, outdated), outdated[0])
        return next_child, _condition("False", "RolloutProgressing", f"updating {next_child}")

    def _problem(self, child: _Child) -> str:
        existing = self.children.get(_identity(child.latest))
        differs = existing is not None and child.follows is not None and self.strategy.applied(existing, child.desired).is_changed
        problem = why_not_ready(existing, self.rules[child.latest.info.id]) or ("is not yet as desired" if differs else "")
        return f"{child} {problem}" if problem else ""

    def _key(self, child: DesiredChild) -> ClaimedChild:
        name = f"{child.namespace}/{child.name}" if child.namespace and not self.is_parent_namespaced else child.name
        return ClaimedChild(child.info.group, child.info.kind, name)


def _identity(child: DesiredChild) -> Identity:
    return child.info.id, child.namespace, child.name


# -- writes to revisions -----------------------------------------------------------------------------------------------


def _writes(observed: Observed, live: Sequence[Revision], rolling: Iterable[_Child], rules: RolloutRules) -> Iterator[RevisionAction]:
    claims: dict[str, set[ClaimedChild]] = {revision.name: set() for revision in live}
    for child in rolling:
        if child.follows is not None:
            claims[child.follows.name].add(child.key)
    latest, *older = live
    for revision in (latest, *(each for each in older if claims[each.name])):
        write = _write(observed, revision, claims[revision.name], history=rules.history)
        if write is not None:
            yield write
    abandoned = [each.stored for each in older if not claims[each.name] and each.stored is not None]
    for stored in (*abandoned, *rules.unused):
        if not unstructured.is_deleting(stored):
            yield DeleteChild(info=REVISIONS, obj=stored, reason="no child follows this revision any more")


def _write(
    observed: Observed, revision: Revision, claims: AbstractSet[ClaimedChild], *, history: RevisionHistory
) -> CreateChild | UpdateChild | None:
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
