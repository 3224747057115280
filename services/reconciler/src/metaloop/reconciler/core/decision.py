"""Decides all writes of one sync, to revisions, children and the parent, from what was observed and answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.children.plan import plan_of
from metaloop.reconciler.core.hooks.validation import desired_children
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed, Plan, RevisionAction
from metaloop.reconciler.core.parent.finalizer import manages_children
from metaloop.reconciler.core.rollout.revisions import RevisionHistory, Revisions
from metaloop.reconciler.core.rollout.rollout import DesiredByRevision, RolloutRules, combined_answer, rollout_of, with_condition
from metaloop.reconciler.core.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRules:
    """The rules by which a parent's children become the desired ones."""

    variant: Variant
    strategy: ApplyStrategy
    history: RevisionHistory | None
    """None if no child rolls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The writes of one sync by stage. Each stage is carried out only if the stages before it succeeded."""

    revisions: tuple[RevisionAction, ...] = ()
    children: Plan = field(default_factory=Plan)
    answer: Answer
    """What to write to the parent itself."""


def decision_of(
    observed: Observed, children: tuple[ChildGroup, ...], revisions: Revisions, answers: Sequence[Answer], rules: DecisionRules
) -> Decision:
    """What to do, given the hook's answer for each live revision. Raises InvalidAnswer, which names the field."""
    answer = combined_answer(answers)
    if not manages_children(observed, answer):
        return Decision(answer=answer)
    answered = [
        DesiredByRevision(revision=revision, children=desired_children(each, observed, variant=rules.variant))
        for revision, each in zip(revisions.live, answers, strict=True)
    ]
    if rules.history is None:
        return Decision(answer=answer, children=plan_of(observed, children, answered[0].children, strategy=rules.strategy))
    rollout = rollout_of(
        observed, children, answered, RolloutRules(strategy=rules.strategy, history=rules.history, unused=revisions.unused)
    )
    return Decision(
        revisions=rollout.revisions,
        children=plan_of(observed, children, rollout.desired, strategy=rules.strategy),
        answer=with_condition(answer, rollout.condition),
    )
