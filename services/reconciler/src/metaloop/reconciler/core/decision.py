"""What one sync is to do: write to revisions, then to children, then to the parent; out of all that was observed and answered."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from metaloop.reconciler.core.changes import ApplyStrategy
from metaloop.reconciler.core.finalize import manages_children
from metaloop.reconciler.core.flavours import flavour_of
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed, Plan
from metaloop.reconciler.core.plan import plan_of
from metaloop.reconciler.core.revision import RevisionAction, Revisions, is_rolling
from metaloop.reconciler.core.rollout import DesiredBy, rollout_of, whole_answer, with_condition
from metaloop.reconciler.core.validate import desired_children


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
    answer = whole_answer(answers)
    if not manages_children(observed, answer):
        return Decision(answer=answer)
    flavour = flavour_of(observed.controller.id)
    wishes = [
        DesiredBy(revision=revision, children=desired_children(each, observed, flavour=flavour))
        for revision, each in zip(revisions.live, answers, strict=True)
    ]
    if not is_rolling(observed):
        return Decision(answer=answer, children=plan_of(observed, children, wishes[0].children, how=how))
    rollout = rollout_of(observed, children, wishes, spent=revisions.spent, how=how)
    return Decision(
        revisions=rollout.revisions,
        children=plan_of(observed, children, rollout.desired, how=how),
        answer=with_condition(answer, rollout.condition),
    )
