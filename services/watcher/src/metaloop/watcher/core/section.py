"""A section of a cache: the objects that one request to the API server watches.

A cache has one section, unless the watcher is restricted to some namespaces: then each of these is a section of the
cache of a resource, and is listed and watched on its own.
"""

from dataclasses import dataclass

from metaloop.watcher.core.record import ObjectKey
from metaloop.watcher.core.watch import Watch, WatchStatus


@dataclass(slots=True, kw_only=True)
class Section:
    """How far the watch of one section has come."""

    watch: Watch
    """What is asked of the API server."""
    status: WatchStatus
    version: int = 0
    """Every object is at least as new as this."""
    is_synced: bool = False
    """Whether a whole list was seen."""
    unlisted: set[ObjectKey] | None = None
    """During a list: the keys that it has not shown yet."""
