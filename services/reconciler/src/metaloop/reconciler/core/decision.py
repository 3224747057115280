"""What one sync is to do: write to revisions, then to children, then to the parent; out of all that was observed and answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.children.plan import plan_of
from metaloop.reconciler.core.hooks.validation import desired_children
from metaloop.reconciler.core.kinds.registry import variant_of
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed, Plan
from metaloop.reconciler.core.parent.finalizer import manages_children
from metaloop.reconciler.core.rollout.revisions import RevisionAction, Revisions, is_rolling
from metaloop.reconciler.core.rollout.rollout import DesiredBy, combined_answer, rollout_of, with_condition


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The writes of one sync, stage by stage: each stage is carried out only when those before it were."""

    revisions: tuple[RevisionAction, ...] = ()
    children: Plan = field(default_factory=Plan)
    answer: Answer
    """What is to be written to the parent itself."""


def decision_of(
    observed: Observed, children: tuple[ChildGroup, ...], revisions: Revisions, answers: Sequence[Answer], *, how: ApplyStrategy
) -> Decision:
    """What to do, given what the hook answered for each live revision. Raises InvalidAnswer where an answer doesn't fit its controller."""
    answer = combined_answer(answers)
    if not manages_children(observed, answer):
        return Decision(answer=answer)
    variant = variant_of(observed.controller.id)
    answered = [
        DesiredBy(revision=revision, children=desired_children(each, observed, variant=variant))
        for revision, each in zip(revisions.live, answers, strict=True)
    ]
    if not is_rolling(observed):
        return Decision(answer=answer, children=plan_of(observed, children, answered[0].children, how=how))
    rollout = rollout_of(observed, children, answered, spent=revisions.spent, how=how)
    return Decision(
        revisions=rollout.revisions,
        children=plan_of(observed, children, rollout.desired, how=how),
        answer=with_condition(answer, rollout.condition),
    )
