"""Drift: what of an object is not as its manifest wants it, although nobody changed the manifest.

Only fields of the manifest count. What the API server or another controller adds is no drift. A field that is empty in
the manifest may be absent from the object: the API server leaves many of them out. Null leaves a field to others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured

_COMPARED_METADATA: Final = ("labels", "annotations")
_NOT_COMPARED: Final = frozenset({"apiVersion", "kind", "metadata", "status"})


def drifted_field(manifest: JsonObject, live: JsonObject, *, is_merged: bool) -> str:
    """The path of the first field of `manifest` that `live` has otherwise. Empty if there is none.

    `is_merged` says that lists are merged: others may have added elements.
    """
    found = _Comparison(is_merged=is_merged)
    wanted, present = unstructured.metadata(manifest), unstructured.metadata(live)
    of_metadata = (each for name in _COMPARED_METADATA for each in found.drifted(wanted.get(name), present.get(name), f"metadata.{name}"))
    of_content = (
        each for name, value in manifest.items() if name not in _NOT_COMPARED for each in found.drifted(value, live.get(name), name)
    )
    return next(chain(of_metadata, of_content), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """How values are compared. Each method yields the paths at which they differ."""

    is_merged: bool

    def drifted(self, wanted: JsonValue, present: JsonValue, path: str) -> Iterator[str]:
        """Compare any two values."""
        if wanted is None or (_is_empty(wanted) and _is_empty(present)):
            return
        if is_object(wanted) and is_object(present):
            for name, value in wanted.items():
                yield from self.drifted(value, present.get(name), f"{path}.{name}")
        elif is_array(wanted) and is_array(present):
            yield from self._drifted_list(wanted, present, path)
        elif wanted != present:
            yield path

    def _drifted_list(self, wanted: list[JsonValue], present: list[JsonValue], path: str) -> Iterator[str]:
        if self.is_merged:
            yield from (f"{path}[{index}]" for index, value in enumerate(wanted) if not self._is_among(present, value))
        elif len(wanted) != len(present):
            yield path
        else:
            for index, (value, other) in enumerate(zip(wanted, present, strict=True)):
                yield from self.drifted(value, other, f"{path}[{index}]")

    def _is_among(self, present: list[JsonValue], value: JsonValue) -> bool:
        return any(next(self.drifted(value, other, ""), None) is None for other in present)


def _is_empty(value: JsonValue) -> bool:
    return value is None or value is False or value in ("", 0, [], {})
