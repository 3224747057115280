"""The child rules of controllers of every kind: the resources of children, and their update methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from metaloop.common.api import fields
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId

UpdateMethod: TypeAlias = Literal["OnDelete", "Recreate", "InPlace", "RollingRecreate", "RollingInPlace"]
DriftAction: TypeAlias = Literal["leave", "recreate", "update"]
"""What happens to a child that differs from the desired one: nothing, deletion and recreation, or an update in
place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodTraits:
    """The meaning of an update method."""

    on_drift: DriftAction
    rolls: bool = False
    """Whether children are rolled out one at a time to a new revision of their parent, if the controller keeps
    revisions."""
    waits_for_generation: bool = False
    """Whether a rollout waits until the status of an updated child has observed its generation."""


UPDATE_METHODS: Final[Mapping[UpdateMethod, MethodTraits]] = {
    "OnDelete": MethodTraits(on_drift="leave"),
    "Recreate": MethodTraits(on_drift="recreate"),
    "InPlace": MethodTraits(on_drift="update"),
    "RollingRecreate": MethodTraits(on_drift="recreate", rolls=True),
    "RollingInPlace": MethodTraits(on_drift="update", rolls=True, waits_for_generation=True),
}
"""Everything that depends on the update method: no other code compares their names."""

ALL_METHODS: Final[tuple[UpdateMethod, ...]] = tuple(UPDATE_METHODS)
PLAIN_METHODS: Final[tuple[UpdateMethod, ...]] = tuple(name for name, traits in UPDATE_METHODS.items() if not traits.rolls)
"""The update methods of kinds whose parents have no revisions to roll out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCheck:
    """A condition that an updated child must have before the next one is updated. None matches any value."""

    type: str
    status: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRule:
    """One resource of children, and their update method."""

    resource: ResourceId
    method: UpdateMethod
    status_checks: tuple[StatusCheck, ...]

    @property
    def rolls(self) -> bool:
        """Whether such children are rolled out from revision to revision, if the controller keeps revisions."""
        return UPDATE_METHODS[self.method].rolls


def parse_child_rules(spec: JsonObject, key: str, *, methods: tuple[UpdateMethod, ...] = ALL_METHODS) -> tuple[ChildRule, ...]:
    """The rules in the list at `key` of a controller's `spec`, with the update `methods` of its kind.

    Raises InvalidSpec for a resource that is listed twice, even in two versions.
    """
    rules = tuple(
        _child_rule(raw, f"spec.{key}[{index}]", methods=methods) for index, raw in enumerate(fields.objects_at(spec, key, "spec"))
    )
    # Two versions show the same objects: a child that is desired in one would be deleted as undesired in the other.
    require_different([ResourceId(rule.resource.group, rule.resource.resource) for rule in rules], f"spec.{key}")
    return rules


def require_different(resources: Sequence[ResourceId], field: str) -> None:
    """Raise InvalidSpec if one of `resources` is listed twice."""
    seen: set[ResourceId] = set()
    for index, resource in enumerate(resources):
        if resource in seen:
            raise InvalidSpec(f"{field}[{index}]", f"{resource} is listed twice")
        seen.add(resource)


def _child_rule(raw: JsonObject, field: str, *, methods: tuple[UpdateMethod, ...]) -> ChildRule:
    strategy = fields.object_at(raw, "updateStrategy", field) or {}
    field_of_strategy = f"{field}.updateStrategy"
    checks = fields.object_at(strategy, "statusChecks", field_of_strategy) or {}
    return ChildRule(
        resource=fields.resource_id(raw, field),
        method=cast("UpdateMethod", fields.one_of(strategy, "method", field_of_strategy, choices=methods, default="OnDelete")),
        status_checks=tuple(
            _status_check(check, f"{field_of_strategy}.statusChecks.conditions[{index}]")
            for index, check in enumerate(fields.objects_at(checks, "conditions", f"{field_of_strategy}.statusChecks"))
        ),
    )


def _status_check(raw: JsonObject, field: str) -> StatusCheck:
    return StatusCheck(
        type=fields.required_text(raw, "type", field),
        status=unstructured.text(raw, "status") or None,
        reason=unstructured.text(raw, "reason") or None,
    )
