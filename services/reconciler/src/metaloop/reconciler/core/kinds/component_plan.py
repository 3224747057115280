"""What `metaloop plan` shows of a component: all of its waves, and what would be deleted. It writes nothing."""

from collections.abc import Sequence
from datetime import datetime

from metaloop.common.api.component import is_suspended, stated_intervals, stated_user
from metaloop.reconciler.core.component.identity import ObjectKey
from metaloop.reconciler.core.component.preview import Preview, previewed_removal, previewed_waves
from metaloop.reconciler.core.component.removal import Occasion, going, is_orphaned
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.kinds.component import read_references, run_of, schedule
from metaloop.reconciler.core.kinds.component_deletion import blockers_of
from metaloop.reconciler.core.kinds.component_hooks import generate
from metaloop.reconciler.core.kinds.component_run import ComponentRun
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.steps import Steps


def preview_component(observed: Observed, now: datetime) -> Steps[Preview]:
    """What the passes over a component would do from now on. Raises the error that would prevent it.

    Of its hooks, only the generator is called.
    """
    run = run_of(observed, now)
    run.acting_as = stated_user(run.controller, observed.parent)
    yield from run.load()
    if observed.is_deleting:
        blockers = yield from blockers_of(run)
        return (yield from _preview(run, (), "delete", [f"deletion is blocked by {each}" for each in blockers]))
    run.intervals = stated_intervals(run.controller, observed.parent)
    yield from read_references(run)
    answer = yield from generate(run)
    targets = yield from schedule(run, answer)
    obstacles = ["the component is suspended"] if is_suspended(run.controller, observed.parent) else []
    return (yield from _preview(run, targets, "apply", obstacles))


def _preview(run: ComponentRun, targets: Sequence[Target], occasion: Occasion, obstacles: Sequence[str]) -> Steps[Preview]:
    yield from run.look(targets)
    yield from run.read(run.items)
    users = yield from _users_of_types(run, occasion)
    waves = previewed_waves(targets, run.items, run.live, run.rules)
    removal = previewed_removal(run.items, run.live, run.rules, occasion=occasion, users=users)
    return Preview(waves=(*waves, *removal), obstacles=tuple(obstacles))


def _users_of_types(run: ComponentRun, occasion: Occasion) -> Steps[dict[ObjectKey, list[str]]]:
    """The instances that others made of each type that would be deleted."""
    users: dict[ObjectKey, list[str]] = {}
    for item in going(run.items, occasion):
        if item.managed_types and not is_orphaned(item, occasion):
            users[item.key] = yield from run.find_foreign(item.managed_types)
    return users
