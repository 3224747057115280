"""The driver of steps: results and errors go back to the `yield`, and the generator is closed in the end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest

from metaloop.common.errors import Conflict, MetaloopError, Unavailable
from metaloop.reconciler.core.steps import Resync, Step, Steps
from metaloop.reconciler.drive import drive

FIRST, SECOND = Resync(1), Resync(2)


def answered_with(results: Mapping[Step, object]) -> Callable[[Step], Awaitable[object]]:
    """Gives each step its result. An exception is raised."""

    async def carry_out(step: Step) -> object:
        result = results[step]
        if isinstance(result, BaseException):
            raise result
        return result

    return carry_out


async def test_each_step_gets_its_own_result():
    def two() -> Steps[tuple[object, object]]:
        first = yield FIRST
        second = yield SECOND
        return first, second

    assert await drive(two(), answered_with({FIRST: "one", SECOND: "two"})) == ("one", "two")


async def test_sync_without_steps_comes_to_its_end():
    def none() -> Steps[str]:
        return "done"
        yield  # this makes it a generator

    assert await drive(none(), answered_with({})) == "done"


async def test_failure_is_raised_where_the_step_was_taken_and_may_be_decided_there():
    def forgiving() -> Steps[object]:
        try:
            yield FIRST
        except Conflict:
            return (yield SECOND)

    assert await drive(forgiving(), answered_with({FIRST: Conflict("changed"), SECOND: "instead"})) == "instead"


async def test_failure_that_nobody_decides_about_ends_the_sync():
    taken: list[Step] = []

    def strict() -> Steps[None]:
        taken.append(FIRST)
        yield FIRST
        taken.append(SECOND)
        yield SECOND

    with pytest.raises(Unavailable):
        await drive(strict(), answered_with({FIRST: Unavailable("away")}))

    assert taken == [FIRST]


async def test_what_a_sync_raises_itself_is_raised():
    def failing() -> Steps[None]:
        yield FIRST
        raise Conflict("decided so")

    with pytest.raises(Conflict, match="decided so"):
        await drive(failing(), answered_with({FIRST: None}))


@pytest.mark.parametrize("end", [RuntimeError("a bug"), asyncio.CancelledError()], ids=repr)
async def test_bug_or_cancellation_is_no_failure_of_a_step(end: BaseException):
    """A sync that caught it would continue although nothing carries out its steps any more."""
    caught: list[BaseException] = []
    closed: list[str] = []

    def forgiving() -> Steps[None]:
        try:
            yield FIRST
        except MetaloopError as failure:
            caught.append(failure)
        finally:
            closed.append("closed")

    with pytest.raises(type(end)):
        await drive(forgiving(), answered_with({FIRST: end}))

    assert (caught, closed) == ([], ["closed"])
