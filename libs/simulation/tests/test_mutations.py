"""Known defects are put back one at a time, and a run finds each."""

from collections.abc import Awaitable, Callable

import pytest
from scenarios import cut_off_during_a_call, swapped_rules

from metaloop.common.json import JsonValue
from metaloop.reconciler.core.apply import merge
from metaloop.reconciler.core.apply.schema import Schema
from metaloop.reconciler.lease import LeaseGuard
from metaloop.simulation.__main__ import run_seed
from metaloop.simulation.run import Result
from metaloop.watcher.core import gate

SEEDS = 20


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
    patch.setattr(gate.Gate, "close", lambda _self, _entry, _writes: False)


def put_back_syncs_that_outlive_their_lease(patch: pytest.MonkeyPatch) -> None:
    """The defect: a sync, and its hook call, go on when the lease ends."""

    async def unbound(_lease: LeaseGuard, work: Awaitable[object]) -> object:
        return await work

    patch.setattr(LeaseGuard, "bound", unbound)


def any_seed() -> Result:
    """The first run of some seeds that shows a problem, else the last."""
    return next((result for seed in range(SEEDS) if not (result := run_seed(seed)).is_good), run_seed(SEEDS))


MUTATIONS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], Callable[[], Result], str]] = {
    "lists are merged by position": (put_back_merging_by_position, swapped_rules, "the rules are"),
    "our own writes are not waited for": (put_back_views_before_our_own_writes, any_seed, "is not shown our own write"),
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
