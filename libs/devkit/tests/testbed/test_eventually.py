"""Waiting until a condition holds, and checking that one keeps holding."""

import asyncio

import pytest

from metaloop.devkit.testbed.eventually import eventually, expect, steadily


class Checks:
    """Checks that change their result after a number of calls."""

    def __init__(self, *, after: int) -> None:
        self.calls = 0
        self._after = after

    async def passes_later(self) -> str:
        """Raises at first, then returns."""
        self.calls += 1
        expect(self.calls > self._after, f"call {self.calls}")
        return "done"

    async def fails_later(self) -> None:
        """Returns at first, then raises."""
        self.calls += 1
        expect(self.calls <= self._after, f"call {self.calls}")


def test_expect_returns_if_the_condition_holds() -> None:
    expect([1], "never said")


@pytest.mark.parametrize("falsy", [False, None, 0, [], ""])
def test_expect_raises_its_message_if_the_condition_does_not_hold(falsy: object) -> None:
    with pytest.raises(AssertionError, match="not yet"):
        expect(falsy, "not yet")


async def test_first_check_that_passes_ends_the_wait() -> None:
    checks = Checks(after=2)

    assert await eventually(checks.passes_later) == "done"
    assert checks.calls == 3


async def test_last_failure_is_raised_with_the_time_that_was_waited() -> None:
    checks = Checks(after=1_000)

    with pytest.raises(AssertionError) as raised:
        await eventually(checks.passes_later, within_seconds=0.1)

    assert str(raised.value) == f"call {checks.calls}"
    assert raised.value.__notes__ == ["after 0.1 s"]


async def test_check_is_called_once_even_without_any_time() -> None:
    checks = Checks(after=0)

    assert await eventually(checks.passes_later, within_seconds=0) == "done"


async def test_failure_that_is_no_assertion_error_ends_the_wait() -> None:
    async def broken() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError):
        await asyncio.wait_for(eventually(broken, within_seconds=60), 5)


async def test_steadily_checks_for_the_whole_time() -> None:
    checks = Checks(after=1_000)
    began = asyncio.get_running_loop().time()

    await steadily(checks.fails_later, for_seconds=0.2)

    assert asyncio.get_running_loop().time() - began >= 0.2
    assert checks.calls > 1


async def test_steadily_ends_at_the_first_failure() -> None:
    checks = Checks(after=2)

    with pytest.raises(AssertionError, match="call 3"):
        await steadily(checks.fails_later, for_seconds=60)
