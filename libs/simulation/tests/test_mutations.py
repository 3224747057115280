"""Known defects are put back one at a time, and a run finds each."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

import pytest
from scenarios import cut_off_during_a_call, outage_of_a_child_kind, stall_in_a_burst, stopped_during_a_call, swapped_rules

from metaloop.common.errors import Unavailable
from metaloop.common.json import JsonValue
from metaloop.hookgateway.errors import CallerLeft, LeaseEnded
from metaloop.hookgateway.incoming import IncomingCall
from metaloop.reconciler.core.apply import merge
from metaloop.reconciler.core.apply.schema import Schema
from metaloop.reconciler.lease import LeaseGuard
from metaloop.simulation.__main__ import run_seed
from metaloop.simulation.run import Result
from metaloop.watcher.core import catch_up, gate
from metaloop.watcher.reflector import Reflector
from metaloop.watcher.watches import Watches

SEEDS = 20
STEPS = 12
EVENTS_PER_TURN = 64


def merge_by_position(observed: list[JsonValue], last: object, desired: list[JsonValue], schema: Schema) -> list[JsonValue]:
    """The defect: elements of a list without keys are merged one by one, though they may stand in another order."""
    before = last if isinstance(last, list) else []
    if not merge.same(before, desired) or len(observed) != len(desired):
        return desired
    return [merge.merge(*versions, schema.items) for versions in zip(observed, before, desired, strict=True)]


def put_back_merging_by_position(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merge, "_merge_unkeyed", merge_by_position)


def put_back_views_before_our_own_writes(patch: pytest.MonkeyPatch) -> None:
    """The defect: a parent does not wait until the cache has seen what its last sync wrote."""
    patch.setattr(gate.Gate, "close", lambda _self, _entry, _writes, **_when: False)


def put_back_syncs_that_outlive_their_lease(patch: pytest.MonkeyPatch) -> None:
    """The defect: a sync, and its hook call, go on when the lease ends. The gateway would end the call, too."""

    async def unbound(_lease: LeaseGuard, work: Awaitable[object]) -> object:
        return await work

    patch.setattr(LeaseGuard, "bound", unbound)
    put_back_calls_without_an_end(patch)


def put_back_calls_without_an_end(patch: pytest.MonkeyPatch) -> None:
    """The defect: the gateway goes on with the call of a reconciler that is stopped."""
    end = IncomingCall.end

    async def unbound(incoming: IncomingCall, _lease_seconds: float | None) -> CallerLeft | LeaseEnded:
        return await end(incoming, None)

    patch.setattr(IncomingCall, "end", unbound)
    patch.setattr(IncomingCall, "_renewals", lambda _incoming: ())


async def timed_lines(reflector: Reflector, start: dict[str, str]) -> AsyncGenerator[list[bytes], None]:
    """Lines within a time limit that goes on while whoever reads them does something else."""
    async with asyncio.timeout(reflector._allowed_silence) as limit, aclosing(reflector._open(start)) as stream:
        async for lines in stream:
            yield lines
            reflector._hear(limit)


async def stream_by_timed_lines(reflector: Reflector, start: dict[str, str]) -> None:
    """As `Reflector._stream` was."""
    async with aclosing(timed_lines(reflector, start)) as stream:
        async for lines in stream:
            for passed_on, line in enumerate(lines, start=1):
                reflector._take(line)
                if passed_on % EVENTS_PER_TURN == 0:
                    await asyncio.sleep(0)
    if not reflector._version:
        raise Unavailable("the watch ended in the middle of the list")


async def keep_running_unless_cancelled(_watches: Watches, reflector: Reflector, _watch: object, _status: object) -> None:
    """As `Watches._keep_running` was."""
    while True:
        with suppress(Exception):
            await reflector.run()
        await asyncio.sleep(1)


def put_back_watches_that_end_silently(patch: pytest.MonkeyPatch) -> None:
    """The defect: a limit spans a yield, so that it may cancel the watch in the middle of something else."""
    patch.setattr(Reflector, "_stream", stream_by_timed_lines)
    patch.setattr(Watches, "_keep_running", keep_running_unless_cancelled)


def put_back_freezes_without_end(patch: pytest.MonkeyPatch) -> None:
    """The defect: controllers wait for a child kind that can't be watched for as long as that lasts."""
    patch.setattr(catch_up, "LONGEST_FREEZE_SECONDS", 1e9)


def any_step() -> Result:
    """The first stall in a burst that shows a problem, else the last."""
    return next((result for step in range(1, STEPS) if not (result := stall_in_a_burst(step)).is_good), stall_in_a_burst(STEPS))


def any_seed() -> Result:
    """The first run of some seeds that shows a problem, else the last."""
    return next((result for seed in range(SEEDS) if not (result := run_seed(seed)).is_good), run_seed(SEEDS))


MUTATIONS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], Result], str]] = {
    "lists are merged by position": (put_back_merging_by_position, swapped_rules, "the rules are"),
    "our own writes are not waited for": (put_back_views_before_our_own_writes, any_seed, "is not shown our own write"),
    "a watch may end silently": (put_back_watches_that_end_silently, any_step, "not converged"),
    "a kind that can't be watched freezes its controllers": (put_back_freezes_without_end, outage_of_a_child_kind, "wait for another kind"),
    "calls outlive the lease of a stopped caller": (put_back_calls_without_an_end, stopped_during_a_call, "two live hook calls"),
    "syncs outlive their lease": (put_back_syncs_that_outlive_their_lease, cut_off_during_a_call, "two live hook calls"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_run_finds_the_defect_and_nothing_without_it(name: str, monkeypatch: pytest.MonkeyPatch):
    put_back, scenario, problem = MUTATIONS[name]
    good = scenario()
    put_back(monkeypatch)
    bad = scenario()

    assert good.is_good, good.problems
    assert any(problem in found for found in bad.problems), bad.problems
