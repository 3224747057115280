"""Caches what is made from an object for each of its versions, so that each sync does not make it again."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

T = TypeVar("T")
_CAPACITY: Final = 10_000


class VersionCache(Generic[T]):
    """What `make` returned for the latest version of each object, by UID.

    It is meant for few objects that are needed often, such as controllers. When there are too many, all are forgotten.
    """

    def __init__(self, make: Callable[[JsonObject], T]) -> None:
        self._make = make
        self._cached: dict[str, tuple[str, T]] = {}

    def of(self, obj: JsonObject) -> T:
        """What `make` returns for this version of `obj`. Errors that it raises are not cached."""
        uid, version = unstructured.uid(obj), unstructured.resource_version(obj)
        cached = self._cached.get(uid)
        if cached is not None and cached[0] == version and version:
            return cached[1]
        if len(self._cached) >= _CAPACITY:
            self._cached.clear()
        made = self._make(obj)
        self._cached[uid] = (version, made)
        return made
