"""The effects of actions: the shell reports them, and the core decides by them."""

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
"""The verb of each action in messages."""


def describe(action: Action) -> str:
    """The action in messages: `create ConfigMap default/a`."""
    return f"{VERBS[type(action)]} {unstructured.describe(action.obj)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """An action that was carried out. `written` is the object as it is now; None if it was gone."""

    action: Action
    written: JsonObject | None = None
    is_noop: bool = False
    """Whether the write changed nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What came of several actions."""

    done: tuple[Done, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def writes(self) -> list[Write]:
        """The writes that the API server acknowledged or may have executed."""
        acknowledged = [
            write_of(done.action.info, done.written, is_deletion=isinstance(done.action, DeleteChild))
            for done in self.done
            if done.written is not None
        ]
        return [*acknowledged, *(failure.uncertain for failure in self.failures if failure.uncertain is not None)]

    @property
    def has_noops(self) -> bool:
        """Whether a write changed nothing. From now on its child counts as being as desired."""
        return any(done.is_noop for done in self.done)

    @property
    def adopted(self) -> dict[ResourceId, list[JsonObject]]:
        """The adopted children as they are now, by resource."""
        groups: dict[ResourceId, list[JsonObject]] = {}
        for done in self.done:
            if isinstance(done.action, Adopt) and done.written is not None:
                groups.setdefault(done.action.info.id, []).append(_as_observed(done.written))
        return groups


def write_of(info: ResourceInfo, written: JsonObject, *, is_deletion: bool) -> Write:
    """What the watcher has to see before it grants the parent again: `written` as it is now, or its deletion."""
    return Write(
        resource=info.id,
        namespace=unstructured.namespace(written),
        name=unstructured.name(written),
        uid=unstructured.uid(written),
        resource_version="" if is_deletion else unstructured.resource_version(written),
    )


def _as_observed(obj: JsonObject) -> JsonObject:
    """`obj` as an observation from the watcher contains it."""
    return unstructured.without_metadata(obj, {"managedFields"})
