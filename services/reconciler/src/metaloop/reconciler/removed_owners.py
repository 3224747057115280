"""Notices owners that a hook names and that somebody removes from its children each time we write them.

The garbage collector does so with owners that do not exist. Without this memory, each removal would be an event that
leads to the next write, and the two would go on for ever.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.machine import monotonic
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references
from metaloop.common.objects.resource import ResourceId
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.model import ApplyChild, ChildWrite, CreateChild, RecreateChild, UpdateChild
from metaloop.reconciler.errors import OwnerRemoved

_WRITES: Final = 2
"""How often an owner is written. The second time is for somebody who removed it once, by hand."""
_REMEMBERED_SECONDS: Final = 600.0
"""How long after its last write an owner is not written again."""
_CAPACITY: Final = 10_000

_Key: TypeAlias = tuple[ResourceId, str, str, str]
"""The child's resource, namespace and name, and the owner's UID. A child that is recreated has another UID."""


class RemovedOwners:
    """How often each owner was written to each child, and when last. When there are too many, all are forgotten."""

    def __init__(self, *, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._writes: dict[_Key, tuple[int, float]] = {}

    def check(self, action: UpdateChild | ApplyChild | RecreateChild) -> None:
        """Raises OwnerRemoved if all that the action would change are owners that were removed too often."""
        observed = action.observed or {}
        if not self._writes:
            return
        given_up = self._given_up(action, observed)
        if given_up and _changes_nothing_else(action, observed, given_up):
            names = ", ".join(sorted(_described(reference) for reference in given_up.values()))
            raise OwnerRemoved(f"somebody removes an owner that the hook names each time it is written: {names}; does it exist?")

    def learn(self, action: ChildWrite, written: JsonObject) -> None:
        """Remembers the owners that a write added to a child. `written` is the child as it is now."""
        references = owner_references(written)
        if len(references) <= 1:  # the parent
            return
        if len(self._writes) >= _CAPACITY:
            self._writes.clear()
        before: JsonObject = {} if isinstance(action, CreateChild) else action.observed or {}
        now = self._clock()
        for owner in _uids(references) - _uids(owner_references(before)):
            key = (*_child(action), owner)
            self._writes[key] = (self._count(key, now) + 1, now)

    def _given_up(self, action: ChildWrite, observed: JsonObject) -> dict[str, JsonObject]:
        """The owners to write that are missing on the child although they were written often enough, by UID."""
        now, child, present = self._clock(), _child(action), _uids(owner_references(observed))
        desired = {unstructured.text(each, "uid"): each for each in owner_references(action.obj)}
        return {uid: reference for uid, reference in desired.items() if uid not in present and self._count((*child, uid), now) >= _WRITES}

    def _count(self, key: _Key, now: float) -> int:
        count, last = self._writes.get(key, (0, now))
        return count if now - last < _REMEMBERED_SECONDS else 0


def _changes_nothing_else(action: UpdateChild | ApplyChild | RecreateChild, observed: JsonObject, owners: Iterable[str]) -> bool:
    rest = _without_owners(action.obj, set(owners))
    if isinstance(action, ApplyChild) or (isinstance(action, RecreateChild) and action.is_applied):
        return _is_within(rest, observed)
    return same(rest, observed)


def _without_owners(obj: JsonObject, owners: set[str]) -> JsonObject:
    kept = [reference for reference in owner_references(obj) if unstructured.text(reference, "uid") not in owners]
    return {**obj, "metadata": {**unstructured.metadata(obj), "ownerReferences": [*kept]}}


def _is_within(part: JsonObject, whole: JsonObject) -> bool:
    """Whether `whole` has every field of `part`, with the same value."""
    for key, value in part.items():
        there = whole.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            if not _is_within(value, there):
                return False
        elif not same(value, there):
            return False
    return True


def _child(action: ChildWrite) -> tuple[ResourceId, str, str]:
    return action.info.id, unstructured.namespace(action.obj), unstructured.name(action.obj)


def _uids(references: Iterable[JsonObject]) -> set[str]:
    return {unstructured.text(reference, "uid") for reference in references}


def _described(reference: JsonObject) -> str:
    return f"{unstructured.text(reference, 'kind')} {unstructured.text(reference, 'name')} ({unstructured.text(reference, 'uid')})"
