"""Remembers which writes changed nothing, so that they are not done again in each sync.

Some API servers keep something else than what they were told (an admission webhook rewrites an image): then a child differs from what is desired for ever, and
writing it again changes nothing. Nothing but CPU and requests depends on this memory: without it, each such write is done once more.
"""

from hashlib import blake2b
from typing import Final

from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import ApplyChild, RecreateChild, UpdateChild

_CAPACITY: Final = 50_000
_MOVING: Final = frozenset({"resourceVersion", "managedFields"})

Repeatable = UpdateChild | ApplyChild | RecreateChild
"""Writes to a child that is there."""


class FutileWrites:
    """The last futile write to each child, by its UID; all are forgotten at once when there are too many."""

    def __init__(self) -> None:
        self._digests: dict[str, bytes] = {}

    def has(self, action: Repeatable) -> bool:
        """Whether this very write changed nothing when it was done before, to a child that has changed since in nothing but its status."""
        known = self._digests.get(_uid(action))
        return known is not None and known == _digest(action)

    def learn(self, action: Repeatable, written: JsonObject) -> None:
        """Notes what came of a write: `written` is the child as it then is."""
        uid = _uid(action)
        if action.observed is None or unstructured.resource_version(written) != unstructured.resource_version(action.observed):
            self._digests.pop(uid, None)
            return
        if len(self._digests) >= _CAPACITY:
            self._digests.clear()
        self._digests[uid] = _digest(action)


def _uid(action: Repeatable) -> str:
    return unstructured.uid(action.observed) if action.observed is not None else ""


def _digest(action: Repeatable) -> bytes:
    observed = action.observed or {}
    digest = blake2b(dumps_sorted(_lasting(observed)), digest_size=16)
    digest.update(dumps_sorted(_lasting(action.obj)))
    return digest.digest()


def _lasting(obj: JsonObject) -> JsonObject:
    metadata = {key: value for key, value in unstructured.metadata(obj).items() if key not in _MOVING}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": metadata}
