"""Remembers which writes changed nothing, so that they are not done again in each sync.

Some API servers keep something else than what they were told (an admission webhook rewrites an image, a schema drops a field of the status): then an object
differs from what is desired for ever, and writing it again changes nothing. So it counts as being as desired from then on: a rollout would wait for it in vain.
Without this memory, each such write is done once more, and nothing else is lost.
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
_MOVING: Final = frozenset({"resourceVersion", "managedFields"})

Digest: TypeAlias = Callable[[], bytes]
"""Makes what tells a write from others to the same object: dear, and hardly ever asked for."""
Repeatable: TypeAlias = UpdateChild | ApplyChild | RecreateChild
"""Writes to a child that is there."""


class NoopWrites:
    """The last no-op write to each object, by its UID; all are forgotten at once when there are too many.

    Both methods are told what a write was made of: the object `before` it, None where nobody knows.
    """

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}

    def has(self, before: JsonObject | None, digest: Digest) -> bool:
        """Whether the write of this digest changed nothing when it was done before; none is made of objects that no such write is known of."""
        if before is None or not self._digests:
            return False
        known = self._digests.get(unstructured.uid(before))
        return known is not None and known == digest()

    def learn(self, before: JsonObject | None, digest: Digest, *, written: JsonObject) -> bool:
        """Notes what came of a write, and returns whether it was one: `written` is the object as it then is."""
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
    """An apply strategy for which a child is as desired that no write can bring any nearer to it."""

    strategy: ApplyStrategy
    noops: NoopWrites

    def applied(self, observed: JsonObject, desired: DesiredChild) -> ApplyResult:
        """What applying `desired` makes of the child; unchanged where that is known to be all in vain."""
        applied = self.strategy.applied(observed, desired)
        if applied.is_changed and self.noops.has(observed, partial(_digest_of, observed, applied.obj)):
            return replace(applied, is_changed=False)
        return applied

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> ChildAction:
        """As the strategy has it."""
        return self.strategy.created(desired, parent=parent)

    def updated(self, drifted: Drifted) -> ChildAction:
        """As the strategy has it."""
        return self.strategy.updated(drifted)

    def recreated(self, drifted: Drifted) -> ChildAction:
        """As the strategy has it."""
        return self.strategy.recreated(drifted)


def child_digest(action: Repeatable) -> bytes:
    """Tells one write to a child from another: the same configuration for a child that has changed in nothing but its status makes the same one."""
    return _digest_of(action.observed or {}, action.obj)


def _digest_of(observed: JsonObject, written: JsonObject) -> bytes:
    digest = blake2b(dumps_sorted(_lasting(observed)), digest_size=_DIGEST_BYTES)
    digest.update(dumps_sorted(_lasting(written)))
    return digest.digest()


def parent_digest(wanted: JsonObject, subresource: str) -> bytes:
    """Tells one write to a parent, or to its subresource, from another: the resourceVersion in it says to what it was done."""
    return blake2b(dumps_sorted(wanted), digest_size=_DIGEST_BYTES, key=subresource.encode()).digest()


def _lasting(obj: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in unstructured.metadata(obj).items() if key not in _MOVING}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
