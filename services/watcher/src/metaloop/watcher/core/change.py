"""A change of one object, between two states of its cache."""

from dataclasses import dataclass

from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.watch import Watch


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after: added where there is no `old`, deleted where there is no `new`.

    For a watch with a label selector, an object that no longer matches is deleted.
    """

    watch: Watch
    """The watch that saw it."""
    key: ObjectKey
    old: Record | None
    new: Record | None

    @property
    def resource(self) -> ResourceInfo:
        """The resource of the object."""
        return self.watch.resource

    @property
    def verb(self) -> str:
        """What happened to the object, as the reasons of marks say it."""
        if self.new is None:
            return "deleted"
        return "changed" if self.old else "added"

    def __str__(self) -> str:
        namespace, name = self.key
        kind = self.watch.resource.kind
        return f"{kind} {namespace}/{name} {self.verb}" if namespace else f"{kind} {name} {self.verb}"
