"""`Change`: what happened to one object, between two looks at it."""

from dataclasses import dataclass

from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.record import ObjectKey, Record


@dataclass(frozen=True, slots=True)
class Change:
    """One object of `resource` before and after: added where there was no `old`, deleted where there is no `new`."""

    resource: ResourceInfo
    key: ObjectKey
    old: Record | None
    new: Record | None

    @property
    def verb(self) -> str:
        """What happened to it, as reasons say it."""
        if self.new is None:
            return "deleted"
        return "changed" if self.old else "added"

    def __str__(self) -> str:
        namespace, name = self.key
        return f"{self.resource.kind} {namespace}/{name} {self.verb}" if namespace else f"{self.resource.kind} {name} {self.verb}"
