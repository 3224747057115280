"""Drives a sync: carries out its steps one after the other."""

from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TypeVar

from metaloop.common.errors import MetaloopError
from metaloop.reconciler.core.steps import Step, Steps

T = TypeVar("T")


async def drive(steps: Steps[T], carry_out: Callable[[Step], Awaitable[object]]) -> T:
    """The result of `steps`. Each step is carried out, and its result or its MetaloopError is sent back."""
    with closing(steps):
        try:
            step = next(steps)
            while True:
                try:
                    result = await carry_out(step)
                except MetaloopError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value
