"""Remembers which writes changed nothing, so that syncs do not repeat them.

Some API servers store something else than they were sent: an admission webhook rewrites an image, a schema drops a
field of the status. Such an object always differs from what is desired, and writing it again changes nothing. So it
counts as being as desired from then on; a rollout would otherwise wait for it for ever. If this memory is lost, each
such write is done once more, and nothing else happens.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Final, TypeAlias

from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.last_applied import ApplyResult
from metaloop.reconciler.core.children.changes import ApplyStrategy, Drifted
from metaloop.reconciler.core.model import ApplyChild, ChildAction, DesiredChild, RecreateChild, UpdateChild

_CAPACITY: Final = 50_000
_DIGEST_BYTES: Final = 16
_VOLATILE: Final = frozenset({"resourceVersion", "managedFields"})

Digest: TypeAlias = Callable[[], bytes]
"""Computes what tells a write from other writes to the same object. It is expensive, and rarely needed."""
Repeatable: TypeAlias = UpdateChild | ApplyChild | RecreateChild
"""A write to an existing child."""


class NoopWrites:
    """The last no-op write to each object, by UID. When there are too many, all are forgotten at once.

    `before` is the object that a write was made from. It is None if nobody knows.
    """

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}

    def has(self, before: JsonObject | None, digest: Digest) -> bool:
        """Whether the write with this digest changed nothing the last time. The digest is computed only if needed."""
        if before is None or not self._digests:
            return False
        known = self._digests.get(unstructured.uid(before))
        return known is not None and known == digest()

    def learn(self, before: JsonObject | None, digest: Digest, *, written: JsonObject) -> bool:
        """Remembers a write that changed nothing. Returns whether it was one. `written` is the object as it is now."""
        if before is None:
            return False
        uid = unstructured.uid(before)
        if unstructured.resource_version(written) != unstructured.resource_version(before):
            self._digests.pop(uid, None)
            return False
        if len(self._digests) >= _CAPACITY:
            self._digests.clear()
        self._digests[uid] = digest()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutNoops:
    """An apply strategy for which a child is as desired if writing it is known to change nothing."""

    strategy: ApplyStrategy
    noops: NoopWrites

    def applied(self, observed: JsonObject, desired: DesiredChild) -> ApplyResult:
        """The result of applying `desired` to the child. It is unchanged if the write would be a no-op."""
        applied = self.strategy.applied(observed, desired)
        if applied.is_changed and self.noops.has(observed, partial(_digest_of, observed, applied.obj)):
            return replace(applied, is_changed=False)
        return applied

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> ChildAction:
        """The strategy's action."""
        return self.strategy.created(desired, parent=parent)

    def updated(self, drifted: Drifted) -> ChildAction:
        """The strategy's action."""
        return self.strategy.updated(drifted)

    def recreated(self, drifted: Drifted) -> ChildAction:
        """The strategy's action."""
        return self.strategy.recreated(drifted)


def child_digest(action: Repeatable) -> bytes:
    """The digest of a write to a child. A change of the child's status alone does not change it."""
    return _digest_of(action.observed or {}, action.obj)


def _digest_of(observed: JsonObject, written: JsonObject) -> bytes:
    digest = blake2b(dumps_sorted(stable_part(observed)), digest_size=_DIGEST_BYTES)
    digest.update(dumps_sorted(stable_part(written)))
    return digest.digest()


def parent_digest(desired: JsonObject, subresource: str) -> bytes:
    """The digest of a write to a parent or its subresource, including the resourceVersion that it was made from."""
    return blake2b(dumps_sorted(desired), digest_size=_DIGEST_BYTES, key=subresource.encode()).digest()


def stable_part(obj: JsonObject) -> JsonObject:
    """An object without its status, and without what every write to it changes."""
    return unstructured.without_metadata({key: value for key, value in obj.items() if key != "status"}, _VOLATILE)
