"""The settings of one object: its annotations, and where it has none, the policies of its component.

The policies of a component are those of its controller, as far as the component says nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, cast

from metaloop.common.api.policies import (
    ADOPTION,
    DEFAULT_OVERRIDDEN_MANAGERS,
    DELETE,
    MISSING_NAMESPACES,
    RECONCILE,
    UPDATE,
    AdoptionPolicy,
    DeletePolicy,
    Policies,
    ReconcilePolicy,
    UpdatePolicy,
    canonical,
)
from metaloop.common.duration import seconds_of
from metaloop.common.errors import InvalidAnswer, InvalidParent
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.hints import NO_HINTS, Hints, hints_of
from metaloop.reconciler.core.component.order import is_namespace, is_type

LEAST_ORDER: Final = -(2**15)
GREATEST_ORDER: Final = 2**15 - 1
_CACHED_POLICIES: Final = 256
_UNSET: Final = "default"
"""A former way to say that an object has no policy of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSettings:
    """How one object is deployed."""

    adoption: AdoptionPolicy = "IfUnowned"
    reconcile: ReconcilePolicy = "OnObjectChange"
    update: UpdatePolicy = "Replace"
    overridden_managers: tuple[str, ...] = DEFAULT_OVERRIDDEN_MANAGERS
    """Whose fields `SsaOverride` takes over."""
    delete: DeletePolicy = "Delete"
    apply_order: int = 0
    purge_order: int | None = None
    """After which wave the object is deleted again, although it was desired. None: never."""
    delete_order: int = 0
    reapply_seconds: float = 3600.0
    hints: Hints = NO_HINTS


def object_settings(obj: JsonObject, *, prefix: str, policies: Policies, field: str) -> ObjectSettings:
    """The settings of the object at `field`. Raises InvalidAnswer for the first invalid annotation."""
    read = _Annotations(obj, prefix, field)
    default = _settings_by(policies)
    if not read.any():
        return default
    purge_order = read.order("purge-order")
    if purge_order is not None and (is_type(obj) or is_namespace(obj)):
        raise read.invalid("purge-order", f"is not allowed on a {unstructured.kind(obj)}: its contents would be gone with it")
    return replace(
        default,
        adoption=cast("AdoptionPolicy", read.choice("adoption-policy", ADOPTION) or default.adoption),
        reconcile=cast("ReconcilePolicy", read.choice("reconcile-policy", RECONCILE) or default.reconcile),
        update=cast("UpdatePolicy", read.choice("update-policy", UPDATE) or default.update),
        delete=cast("DeletePolicy", read.choice("delete-policy", DELETE) or default.delete),
        apply_order=read.order("apply-order") or 0,
        purge_order=purge_order,
        delete_order=read.order("delete-order") or 0,
        reapply_seconds=read.seconds("reapply-interval", default=default.reapply_seconds),
        hints=read.read("status-hint", hints_of) or NO_HINTS,
    )


@lru_cache(_CACHED_POLICIES)
def _settings_by(policies: Policies) -> ObjectSettings:
    """The settings of an object that says nothing itself, as most do."""
    return ObjectSettings(
        adoption=policies.adoption,
        reconcile=policies.reconcile,
        update=policies.update,
        overridden_managers=policies.overridden_managers,
        delete=policies.delete,
        reapply_seconds=policies.reapply_seconds,
    )


@dataclass(frozen=True, slots=True)
class _Annotations:
    """The annotations of an object that are ours."""

    obj: JsonObject
    prefix: str
    field: str

    def any(self) -> bool:
        """Whether there are any."""
        start = f"{self.prefix}/"
        return any(key.startswith(start) for key in unstructured.annotations(self.obj))

    def read(self, name: str, parse: Callable[[str], Any]) -> Any:
        """What `parse` makes of an annotation, None if it is absent. Its ValueError is the annotation's problem."""
        text = unstructured.annotations(self.obj).get(f"{self.prefix}/{name}", "").strip()
        if not text:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise self.invalid(name, str(error)) from error

    def invalid(self, name: str, problem: str) -> InvalidAnswer:
        """The error about an annotation."""
        return InvalidAnswer(f"{self.field}.metadata.annotations[{self.prefix}/{name}]", f"{problem} ({unstructured.describe(self.obj)})")

    def choice(self, name: str, choices: tuple[str, ...]) -> str | None:
        """The policy in an annotation."""

        def parse(text: str) -> str | None:
            return None if text.lower() == _UNSET else _choice(text, choices)

        return self.read(name, parse)

    def order(self, name: str) -> int | None:
        """The order in an annotation."""
        return self.read(name, _order)

    def seconds(self, name: str, *, default: float) -> float:
        """The duration in an annotation."""
        found: float | None = self.read(name, _seconds)
        return default if found is None else found


def _choice(text: str, choices: tuple[str, ...]) -> str:
    found = canonical(text, choices)
    if found is None:
        raise ValueError(f"must be one of {', '.join(choices)}, not {text!r}")
    return found


def _order(text: str) -> int:
    problem = f"must be a whole number from {LEAST_ORDER} to {GREATEST_ORDER}, not {text!r}"
    try:
        order = int(text)
    except ValueError as error:
        raise ValueError(problem) from error
    if not LEAST_ORDER <= order <= GREATEST_ORDER:
        raise ValueError(problem)
    return order


def _seconds(text: str) -> float:
    seconds = seconds_of(text)
    if seconds is None or seconds <= 0:
        raise ValueError(f"must be a duration like 10s or 1h30m, not {text!r}")
    return seconds


# -- what a component says itself --------------------------------------------------------------------------------------


def component_policies(policies: Policies, stated: JsonObject, *, field: str) -> Policies:
    """The policies of a component: those that it states itself, and for the rest those of its controller.

    Raises InvalidParent for the first that is no policy. `field` is where the component states them.
    """
    result = policies
    for name, (attribute, choices) in _STATED.items():
        value = stated.get(name)
        if value is None or value == "":
            continue
        found = canonical(value, choices) if isinstance(value, str) else None
        if found is None:
            raise InvalidParent(f"{field}.{name}", f"must be one of {', '.join(choices)}, not {value!r}")
        result = replace(result, **{attribute: found})
    return result


_STATED: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "adoption": ("adoption", ADOPTION),
    "reconcile": ("reconcile", RECONCILE),
    "update": ("update", UPDATE),
    "delete": ("delete", DELETE),
    "missingNamespaces": ("missing_namespaces", MISSING_NAMESPACES),
}
"""The policies that a component may state, and what they are called here."""
