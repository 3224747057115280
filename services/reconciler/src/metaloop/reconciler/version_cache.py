"""Remembers what was made of the latest version of each object, so that it is made once per version and not once per sync."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

T = TypeVar("T")
_CAPACITY: Final = 10_000


class VersionCache(Generic[T]):
    """What `make` made of the latest version that was seen of each object, by UID.

    For few objects that are asked for often, like controllers. Objects that are gone are forgotten all at once, with the others, when there are too many.
    """

    def __init__(self, make: Callable[[JsonObject], T]) -> None:
        self._make = make
        self._made: dict[str, tuple[str, T]] = {}

    def of(self, obj: JsonObject) -> T:
        """What was made of this version of `obj`; what `make` raises is not remembered."""
        uid, version = unstructured.uid(obj), unstructured.resource_version(obj)
        known = self._made.get(uid)
        if known is not None and known[0] == version and version:
            return known[1]
        if len(self._made) >= _CAPACITY:
            self._made.clear()
        made = self._make(obj)
        self._made[uid] = (version, made)
        return made
