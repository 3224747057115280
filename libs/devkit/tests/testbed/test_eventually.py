"""Waiting for what must come true, and watching over what must stay true."""

import asyncio

import pytest

from metaloop.devkit.testbed.eventually import eventually, expect, steadily


class Checks:
    """A check that fails so often, then returns, or then fails."""

    def __init__(self, *, fails: int) -> None:
        self.looks = 0
        self._fails = fails

    async def passes_later(self) -> str:
        """Raises so often; then its result."""
        self.looks += 1
        expect(self.looks > self._fails, f"look {self.looks}")
        return "come true"

    async def fails_later(self) -> None:
        """Passes so often; then it raises."""
        self.looks += 1
        expect(self.looks <= self._fails, f"look {self.looks}")


def test_what_holds_is_expected_without_a_word() -> None:
    expect([1], "never said")


@pytest.mark.parametrize("falsy", [False, None, 0, [], ""])
def test_what_does_not_hold_fails_with_its_message(falsy: object) -> None:
    with pytest.raises(AssertionError, match="not yet"):
        expect(falsy, "not yet")


async def test_first_look_that_passes_ends_the_wait() -> None:
    checks = Checks(fails=2)

    assert await eventually(checks.passes_later) == "come true"
    assert checks.looks == 3


async def test_last_failure_is_told_with_the_time_that_was_waited() -> None:
    checks = Checks(fails=1_000)

    with pytest.raises(AssertionError) as raised:
        await eventually(checks.passes_later, within_seconds=0.1)

    assert str(raised.value) == f"look {checks.looks}"
    assert raised.value.__notes__ == ["after 0.1 s"]


async def test_check_is_looked_at_once_even_without_any_time() -> None:
    checks = Checks(fails=0)

    assert await eventually(checks.passes_later, within_seconds=0) == "come true"


async def test_failure_that_is_no_assertion_ends_the_wait_at_once() -> None:
    async def broken() -> None:
        raise LookupError("no such thing")

    with pytest.raises(LookupError):
        await asyncio.wait_for(eventually(broken, within_seconds=60), 5)


async def test_what_stays_true_is_looked_at_for_the_whole_time() -> None:
    checks = Checks(fails=1_000)
    began = asyncio.get_running_loop().time()

    await steadily(checks.fails_later, for_seconds=0.2)

    assert asyncio.get_running_loop().time() - began >= 0.2
    assert checks.looks > 1


async def test_first_look_that_fails_ends_the_watch() -> None:
    checks = Checks(fails=2)

    with pytest.raises(AssertionError, match="look 3"):
        await steadily(checks.fails_later, for_seconds=60)
