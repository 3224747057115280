"""Drives a sync: carries out its steps one after the other."""

from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from metaloop.common.errors import MetaloopError
from metaloop.reconciler.core.steps import Step, Steps
from metaloop.reconciler.large_parents import SyncThread

T = TypeVar("T")


async def drive(steps: Steps[T], carry_out: Callable[[Step], Awaitable[object]], *, thread: SyncThread | None = None) -> T:
    """The result of `steps`. Each step is carried out, and its result or its MetaloopError is sent back.

    What a sync computes between its steps is computed in the `thread`, if there is one and its parent is large.
    """
    outcome: object = None
    with closing(steps):
        while True:
            if thread is not None and thread.is_for(outcome):
                step = await thread.run(partial(_next_step, steps, outcome))
            else:
                step = _next_step(steps, outcome)
            if isinstance(step, _Ended):
                return step.result
            del outcome  # it may be large, and the step as well
            outcome = await _outcome_of(step, carry_out)
            del step


async def _outcome_of(step: Step, carry_out: Callable[[Step], Awaitable[object]]) -> object:
    """The result of a step, or its error."""
    try:
        return await carry_out(step)
    except MetaloopError as error:
        return error


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    """A sync ended with this result. A StopIteration can't leave a thread."""

    result: T


def _next_step(steps: Steps[T], outcome: object) -> Step | _Ended[T]:
    """The next step after the outcome of the last one, or the end of the sync."""
    try:
        return steps.throw(outcome) if isinstance(outcome, MetaloopError) else steps.send(outcome)
    except StopIteration as end:
        return _Ended(end.value)
