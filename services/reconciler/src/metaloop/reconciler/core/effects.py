"""What actions came to: values that the shell makes and the core decides by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.report import Write
from metaloop.reconciler.core.model import (
    Action,
    Adopt,
    ApplyChild,
    CreateChild,
    DeleteChild,
    RecreateChild,
    Release,
    UpdateChild,
)
from metaloop.reconciler.errors import Failure

VERBS: Final[Mapping[type[Action], str]] = {
    CreateChild: "create",
    UpdateChild: "update",
    ApplyChild: "apply",
    RecreateChild: "recreate",
    DeleteChild: "delete",
    Adopt: "adopt",
    Release: "release",
}
"""How messages name what an action does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An action that was carried out; `written` is the object as it then is, None where nothing is left to say of it."""

    action: Action
    written: JsonObject | None = None
    is_noop: bool = False
    """Whether it changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What a number of actions came to."""

    done: tuple[Done, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def writes(self) -> list[Write]:
        """What the API server acknowledged, or may have executed."""
        acknowledged = [
            write_of(done.action.info, done.written, is_deletion=isinstance(done.action, DeleteChild))
            for done in self.done
            if done.written is not None
        ]
        return [*acknowledged, *(failure.uncertain for failure in self.failures if failure.uncertain is not None)]

    @property
    def has_noops(self) -> bool:
        """Whether a write showed that no write can change its object: it counts as being as desired from now on."""
        return any(done.is_noop for done in self.done)

    @property
    def adopted(self) -> dict[ResourceId, list[JsonObject]]:
        """The children that were adopted, as they now are, by resource."""
        groups: dict[ResourceId, list[JsonObject]] = {}
        for done in self.done:
            if isinstance(done.action, Adopt) and done.written is not None:
                groups.setdefault(done.action.info.id, []).append(_as_watched(done.written))
        return groups


def write_of(info: ResourceInfo, written: JsonObject, *, is_deletion: bool) -> Write:
    """What the watcher has to see before it shows this parent's world again: `written` as it now is, or that it is gone."""
    return Write(
        resource=info.id,
        namespace=unstructured.namespace(written),
        name=unstructured.name(written),
        uid=unstructured.uid(written),
        resource_version="" if is_deletion else unstructured.resource_version(written),
    )


def _as_watched(obj: JsonObject) -> JsonObject:
    """`obj` as the watcher would have shown it."""
    metadata = {key: value for key, value in unstructured.metadata(obj).items() if key != "managedFields"}
    return {**obj, "metadata": metadata}
