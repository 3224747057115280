"""ComponentController: for each component, the objects that its hook returns, of whatever kinds, in order.

The objects of a component are known by a label, and listed in its status. They have no owner references.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, cast

from metaloop.common.api import fields
from metaloop.common.api.controller import Controller, ParentRule, spec_of
from metaloop.common.api.hook import LIFECYCLE_HOOKS, Hook, HookKeys, Hooks, LifecycleHookName, hook_in
from metaloop.common.api.policies import (
    ADOPTION,
    DEFAULT_OVERRIDDEN_MANAGERS,
    DEFAULT_REAPPLY_SECONDS,
    DELETE,
    DRIFT_DETECTION,
    INVENTORY_STORAGE,
    MISSING_NAMESPACES,
    RECONCILE,
    UPDATE,
    AdoptionPolicy,
    DeletePolicy,
    DriftDetection,
    InventoryStorage,
    MissingNamespaces,
    Policies,
    ReconcilePolicy,
    UpdatePolicy,
)
from metaloop.common.api.references import ReferenceRule, parse_references
from metaloop.common.duration import seconds_of
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.selector import parse_selector

API_VERSION: Final = "metaloop.dev/v1alpha1"
KIND: Final = "ComponentController"
KEYS: Final = HookKeys(parent="parent", children="children", edits_metadata=False, asks_for_retry=True)

DEFAULT_REQUEUE_SECONDS: Final = 600.0
ANY: Final = "*"

_SPEC_FIELDS: Final = (
    "prefix",
    "parentResource",
    "policies",
    "requeueInterval",
    "retryInterval",
    "timeout",
    "reapplyInterval",
    "additionalManagedTypes",
    "inventoryStorage",
    "defaultServiceAccount",
    "parentFields",
    "references",
    "generator",
    "hooks",
    "endpointConfigs",
)
_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    "adoption": ADOPTION,
    "reconcile": RECONCILE,
    "update": UPDATE,
    "delete": DELETE,
    "missingNamespaces": MISSING_NAMESPACES,
    "driftDetection": DRIFT_DETECTION,
}
_PARENT_FIELDS: Final = {
    "namespace": "namespace",
    "suspend": "suspend",
    "policies": "policies",
    "requeueInterval": "requeue_interval",
    "retryInterval": "retry_interval",
    "timeout": "timeout",
    "reapplyInterval": "reapply_interval",
    "serviceAccountName": "service_account_name",
    "user": "user",
}
"""The fields of components that a controller may name, and what they are called here."""

_DNS_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PREFIX: Final = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*")
_PATH: Final = re.compile(r"(?:\.[A-Za-z_][A-Za-z0-9_-]*)+")
_LONGEST_PREFIX: Final = 253
_NO_NAME: Final = "must be the name of a service account"
_NO_DURATION: Final = "must be a duration like 10s or 1h30m"


@dataclass(frozen=True, slots=True)
class TypePattern:
    """Types, by group and kind."""

    group: str
    """A group, `*` for all, or `*.SUFFIX` for those that end so."""
    kind: str
    """A kind, or `*` for all."""

    def covers(self, group: str, kind: str) -> bool:
        """Whether a type is among them."""
        return self.kind in {ANY, kind} and _covers_group(self.group, group)


def _covers_group(pattern: str, group: str) -> bool:
    return pattern in {ANY, group} or (pattern.startswith("*.") and group.endswith(pattern[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusHook:
    """The hook that says how objects of certain kinds are."""

    hook: Hook
    kinds: tuple[TypePattern, ...]

    def covers(self, group: str, kind: str) -> bool:
        """Whether it is asked about objects of a kind."""
        return any(each.covers(group, kind) for each in self.kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentFields:
    """Where components say something themselves. Each is a path such as `.spec.namespace`; None: nowhere."""

    namespace: str | None = None
    suspend: str | None = None
    policies: str | None = None
    requeue_interval: str | None = None
    retry_interval: str | None = None
    timeout: str | None = None
    reapply_interval: str | None = None
    service_account_name: str | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervals:
    """How often, and for how long, a component is looked at. All in seconds."""

    requeue: float = DEFAULT_REQUEUE_SECONDS
    """How often a component that is ready is looked at."""
    retry: float = DEFAULT_REQUEUE_SECONDS
    """How soon a component is looked at again whose hook asked for a retry, and did not say when."""
    timeout: float = DEFAULT_REQUEUE_SECONDS
    """How long a component may take until it counts as failed."""
    reapply: float = DEFAULT_REAPPLY_SECONDS
    """After this time, an object that looks up to date is written once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentController(Controller):
    """A ComponentController that can be served. It has one parent rule and declares no children."""

    kind: ClassVar[str] = KIND
    subscribes: ClassVar[bool] = True
    reads_written: ClassVar[bool] = True

    prefix: str
    """What the names of our labels, annotations and finalizers begin with."""
    generate: Hook
    policies: Policies
    intervals: Intervals
    managed_types: tuple[TypePattern, ...]
    references: tuple[ReferenceRule, ...]
    lifecycle_hooks: Mapping[LifecycleHookName, Hook]
    """Those that are declared."""
    status_hook: StatusHook | None
    default_service_account: str
    """The service account in the namespace of a component that its objects are read and written as. Empty: our own."""
    inventory_storage: InventoryStorage
    """Where inventories are stored. One that is too large for a status is stored in ConfigMaps in any case."""
    parent_fields: ParentFields

    @property
    def finalizer(self) -> str:
        """The finalizer on components."""
        return f"{self.prefix}/finalizer"

    @property
    def impersonated(self) -> tuple[str, ...]:
        """The service account that it acts as by default, if there is one."""
        return (self.default_service_account,) if self.default_service_account else ()

    @property
    def watched(self) -> str:
        """The label that all objects of its components have."""
        return f"{self.prefix}/owner-id"


def parse_component(raw: JsonObject) -> ComponentController:
    """The ComponentController in `raw`. Raises InvalidSpec with the first invalid field."""
    spec = spec_of(raw)
    fields.require_known(spec, "spec", known=_SPEC_FIELDS)
    return ComponentController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        parents=(_parent_rule(spec),),
        children=(),
        hooks=Hooks(sync=None, finalize=None, customize=None),
        endpoint_configs=tuple(fields.objects_at(spec, "endpointConfigs", "spec")),
        resync_period_seconds=None,
        prefix=_prefix(spec),
        generate=_generator(spec),
        policies=_policies(spec),
        intervals=_intervals(spec),
        managed_types=_type_patterns(spec, "additionalManagedTypes", "spec"),
        references=parse_references(spec),
        lifecycle_hooks=_lifecycle_hooks(spec),
        status_hook=_status_hook(spec),
        default_service_account=_service_account(spec),
        inventory_storage=cast(
            "InventoryStorage", fields.one_of(spec, "inventoryStorage", "spec", choices=INVENTORY_STORAGE, default=INVENTORY_STORAGE[0])
        ),
        parent_fields=_parent_fields(spec),
    )


def _prefix(spec: JsonObject) -> str:
    prefix = fields.required_text(spec, "prefix", "spec")
    if not _PREFIX.fullmatch(prefix) or len(prefix) > _LONGEST_PREFIX:
        raise InvalidSpec("spec.prefix", f"must be a DNS name in lower case, like my-operator.example.com, not {prefix!r}")
    return prefix


def _parent_rule(spec: JsonObject) -> ParentRule:
    parent, field = fields.object_at(spec, "parentResource", "spec"), "spec.parentResource"
    if parent is None:
        raise InvalidSpec(field, "is missing")
    fields.require_known(parent, field, known=("apiVersion", "resource", "labelSelector"))
    labels = parse_selector(parent.get("labelSelector"), f"{field}.labelSelector")
    # Nothing that others write into a component's status concerns us, and our own writes need no further pass.
    return ParentRule(resource=fields.resource_id(parent, field), labels=labels, ignore_status_changes=True)


def _generator(spec: JsonObject) -> Hook:
    generator = fields.object_at(spec, "generator", "spec")
    if generator is None:
        raise InvalidSpec("spec.generator", "is missing")
    fields.require_known(generator, "spec.generator", known=("version", "webhook"))
    return _with_webhook(hook_in(generator, "generate", "spec.generator"), "spec.generator")


def _lifecycle_hooks(spec: JsonObject) -> dict[LifecycleHookName, Hook]:
    raw = fields.object_at(spec, "hooks", "spec") or {}
    fields.require_known(raw, "spec.hooks", known=(*LIFECYCLE_HOOKS, "status"))
    hooks: dict[LifecycleHookName, Hook] = {}
    for name in LIFECYCLE_HOOKS:
        stated = fields.object_at(raw, name, "spec.hooks")
        if stated is not None:
            field = f"spec.hooks.{name}"
            fields.require_known(stated, field, known=("version", "webhook"))
            hooks[name] = _with_webhook(hook_in(stated, name, field), field)
    return hooks


def _status_hook(spec: JsonObject) -> StatusHook | None:
    field = "spec.hooks.status"
    raw = fields.object_at(fields.object_at(spec, "hooks", "spec") or {}, "status", "spec.hooks")
    if raw is None:
        return None
    fields.require_known(raw, field, known=("version", "webhook", "kinds"))
    kinds = _type_patterns(raw, "kinds", field)
    if not kinds:
        raise InvalidSpec(f"{field}.kinds", "is missing: it says about which kinds the hook is asked")
    return StatusHook(hook=_with_webhook(hook_in(raw, "status", field), field), kinds=kinds)


def _with_webhook(hook: Hook, field: str) -> Hook:
    if hook.webhook is None:
        raise InvalidSpec(f"{field}.webhook", "is missing: there is no hook to call")
    return hook


def _intervals(spec: JsonObject) -> Intervals:
    requeue = _seconds(spec, "requeueInterval") or DEFAULT_REQUEUE_SECONDS
    return Intervals(
        requeue=requeue,
        retry=_seconds(spec, "retryInterval") or requeue,
        timeout=_seconds(spec, "timeout") or requeue,
        reapply=_seconds(spec, "reapplyInterval") or DEFAULT_REAPPLY_SECONDS,
    )


def _policies(spec: JsonObject) -> Policies:
    stated, field = fields.object_at(spec, "policies", "spec") or {}, "spec.policies"
    fields.require_known(stated, field, known=(*_POLICIES, "overriddenManagers"))
    chosen = {name: fields.one_of(stated, name, field, choices=choices, default=choices[0]) for name, choices in _POLICIES.items()}
    return Policies(
        adoption=cast("AdoptionPolicy", chosen["adoption"]),
        reconcile=cast("ReconcilePolicy", chosen["reconcile"]),
        update=cast("UpdatePolicy", chosen["update"]),
        delete=cast("DeletePolicy", chosen["delete"]),
        overridden_managers=fields.texts_at(stated, "overriddenManagers", field) or DEFAULT_OVERRIDDEN_MANAGERS,
        missing_namespaces=cast("MissingNamespaces", chosen["missingNamespaces"]),
        drift_detection=cast("DriftDetection", chosen["driftDetection"]),
    )


def _seconds(spec: JsonObject, name: str) -> float:
    """The duration at `name`, 0 if it is absent. Raises InvalidSpec for anything else, and if it is negative."""
    seconds = _duration(spec.get(name))
    if seconds is None:
        raise InvalidSpec(f"spec.{name}", _NO_DURATION)
    return seconds


def _duration(value: JsonValue) -> float | None:
    """The seconds of a duration, 0 if it is absent; None for what is none."""
    if value is None or value == "":
        return 0.0
    seconds = seconds_of(value) if isinstance(value, str) else None
    return seconds if seconds is not None and seconds >= 0 else None


def _type_patterns(parent: JsonObject, key: str, where: str) -> tuple[TypePattern, ...]:
    patterns: list[TypePattern] = []
    for index, raw in enumerate(fields.objects_at(parent, key, where)):
        field = f"{where}.{key}[{index}]"
        fields.require_known(raw, field, known=("group", "kind"))
        group, kind = _group(raw, field), fields.required_text(raw, "kind", field)
        if "*" in group.removeprefix("*.") and group != ANY:
            raise InvalidSpec(f"{field}.group", "must be a group, * for all, or *.SUFFIX")
        if "*" in kind and kind != ANY:
            raise InvalidSpec(f"{field}.kind", "must be a kind, or * for all")
        patterns.append(TypePattern(group, kind))
    return tuple(patterns)


def _group(raw: JsonObject, field: str) -> str:
    """The group of a type. The core group is empty, and has to be written nevertheless."""
    return "" if raw.get("group") == "" else fields.required_text(raw, "group", field)


def _service_account(spec: JsonObject) -> str:
    name = spec.get("defaultServiceAccount")
    if name is None or name == "":
        return ""
    if not _is_name(name):
        raise InvalidSpec("spec.defaultServiceAccount", _NO_NAME)
    return str(name)


def _is_name(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_PREFIX and _PREFIX.fullmatch(value) is not None


def _is_user(value: JsonValue) -> bool:
    return isinstance(value, str) and value.isprintable() and value.isascii() and value == value.strip()


def _parent_fields(spec: JsonObject) -> ParentFields:
    stated, field = fields.object_at(spec, "parentFields", "spec") or {}, "spec.parentFields"
    fields.require_known(stated, field, known=_PARENT_FIELDS)
    for name, path in stated.items():
        if not isinstance(path, str) or not _PATH.fullmatch(path):
            raise InvalidSpec(f"{field}.{name}", f"must be a path like .spec.{name}, not {path!r}")
    return ParentFields(**{_PARENT_FIELDS[name]: str(path) for name, path in stated.items()})


# -- what components say themselves ------------------------------------------------------------------------------------


def value_at(component: JsonObject, path: str | None) -> JsonValue:
    """The value at a path such as `.spec.namespace`; None if there is no path, or nothing is there."""
    value: JsonValue = component if path else None
    for name in (path or "").strip(".").split("."):
        value = value.get(name) if is_object(value) else None
    return value


def stated_namespace(controller: ComponentController, component: JsonObject) -> str:
    """The namespace of the objects of a component that name none. Raises InvalidParent."""
    stated = _stated(component, controller.parent_fields.namespace, lambda value: isinstance(value, str), "must be a string")
    return str(stated or unstructured.namespace(component))


def is_suspended(controller: ComponentController, component: JsonObject) -> bool:
    """Whether a component says that nothing is to be done about it. Raises InvalidParent."""
    return bool(_stated(component, controller.parent_fields.suspend, lambda value: isinstance(value, bool), "must be true or false"))


def stated_user(controller: ComponentController, component: JsonObject) -> str:
    """The user on whose behalf the objects of a component are read and written. Empty: our own. Raises InvalidParent.

    That is the user whom the component states, else its service account, else the default one of its controller.
    """
    where = controller.parent_fields
    user = _stated(component, where.user, _is_user, "must be the name of a user")
    if user:
        return str(user)
    stated = _stated(component, where.service_account_name, lambda value: value == "" or _is_name(value), _NO_NAME)
    account = str(stated or controller.default_service_account)
    if not account:
        return ""
    namespace = unstructured.namespace(component)
    if not namespace:
        raise InvalidParent("metadata.namespace", f"is missing: service account {account} has to be in one")
    return f"system:serviceaccount:{namespace}:{account}"


def stated_policies(controller: ComponentController, component: JsonObject) -> JsonObject:
    """The policies that a component states. Raises InvalidParent."""
    stated = _stated(component, controller.parent_fields.policies, is_object, "must be an object")
    return stated if is_object(stated) else {}


def stated_intervals(controller: ComponentController, component: JsonObject) -> Intervals:
    """The intervals of a component: what it states itself, and for the rest its controller's. Raises InvalidParent."""
    where, default = controller.parent_fields, controller.intervals
    return Intervals(
        requeue=_stated_seconds(component, where.requeue_interval) or default.requeue,
        retry=_stated_seconds(component, where.retry_interval) or default.retry,
        timeout=_stated_seconds(component, where.timeout) or default.timeout,
        reapply=_stated_seconds(component, where.reapply_interval) or default.reapply,
    )


def _stated_seconds(component: JsonObject, path: str | None) -> float:
    return _duration(_stated(component, path, lambda value: _duration(value) is not None, _NO_DURATION)) or 0.0


def _stated(component: JsonObject, path: str | None, is_valid: Callable[[JsonValue], bool], problem: str) -> JsonValue:
    value = value_at(component, path)
    if value is not None and not is_valid(value):
        raise InvalidParent((path or "").removeprefix("."), problem)
    return value
