"""What controllers of every kind say about their children: which resources, and how those that differ are updated."""

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
"""What is done to a child that differs from what is desired: nothing, deletion and a new one, or an update in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodTraits:
    """What an update method means."""

    on_drift: DriftAction
    rolls: bool = False
    """Whether children move from one revision of their parent to the next one at a time, where the controller keeps revisions."""
    waits_for_generation: bool = False
    """Whether a rollout waits until an updated child's status is of its present generation."""


UPDATE_METHODS: Final[Mapping[UpdateMethod, MethodTraits]] = {
    "OnDelete": MethodTraits(on_drift="leave"),
    "Recreate": MethodTraits(on_drift="recreate"),
    "InPlace": MethodTraits(on_drift="update"),
    "RollingRecreate": MethodTraits(on_drift="recreate", rolls=True),
    "RollingInPlace": MethodTraits(on_drift="update", rolls=True, waits_for_generation=True),
}
"""All that depends on the update method of a child: nothing else compares their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCheck:
    """A condition that an updated child must show before the next one is updated; None compares with anything."""

    type: str
    status: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildRule:
    """One resource of children, and how those that differ from what is desired are updated."""

    resource: ResourceId
    method: UpdateMethod
    status_checks: tuple[StatusCheck, ...]

    @property
    def rolls(self) -> bool:
        """Whether such children move from revision to revision, where the controller keeps revisions."""
        return UPDATE_METHODS[self.method].rolls


def parse_child_rules(spec: JsonObject, key: str) -> tuple[ChildRule, ...]:
    """The rules in the list at `key` of a controller's `spec`. Raises InvalidSpec for a resource that is listed twice, be it in two versions."""
    rules = tuple(_child_rule(raw, f"spec.{key}[{index}]") for index, raw in enumerate(fields.objects_at(spec, key, "spec")))
    # In two versions they are the same objects: a child that is desired in one would not be desired in the other, and so be deleted.
    require_different([ResourceId(rule.resource.group, rule.resource.resource) for rule in rules], f"spec.{key}")
    return rules


def require_different(resources: Sequence[ResourceId], field: str) -> None:
    """Raise InvalidSpec where one of `resources` is there twice."""
    seen: set[ResourceId] = set()
    for index, resource in enumerate(resources):
        if resource in seen:
            raise InvalidSpec(f"{field}[{index}]", f"{resource} is listed twice")
        seen.add(resource)


def _child_rule(raw: JsonObject, field: str) -> ChildRule:
    strategy = fields.object_at(raw, "updateStrategy", field) or {}
    field_of_strategy = f"{field}.updateStrategy"
    checks = fields.object_at(strategy, "statusChecks", field_of_strategy) or {}
    return ChildRule(
        resource=fields.resource_id(raw, field),
        method=cast(
            "UpdateMethod", fields.one_of(strategy, "method", field_of_strategy, choices=tuple(UPDATE_METHODS), default="OnDelete")
        ),
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
