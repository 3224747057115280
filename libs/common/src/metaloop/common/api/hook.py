"""A controller's hooks: their webhooks, the version of their protocol, and how strictly answers are parsed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast, get_args

from metaloop.common.api import fields
from metaloop.common.duration import seconds_of
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

LifecycleHookName: TypeAlias = Literal["postRead", "preReconcile", "postReconcile", "preDelete", "postDelete"]
"""The hooks of components that are called before and after what Metaloop does itself."""
HookName: TypeAlias = Literal["sync", "finalize", "customize", "map", "tombstone", "generate", "status", LifecycleHookName]
HookVersion: TypeAlias = Literal["v1", "v2"]

LIFECYCLE_HOOKS: Final[tuple[LifecycleHookName, ...]] = get_args(LifecycleHookName)

_DEFAULT_MODES: Final[Mapping[HookVersion, str]] = {"v1": "loose", "v2": "strict"}
"""How answers of each wire version are read, unless the controller says otherwise."""

RETRY_FIELDS: Final = frozenset({"retriable", "retryAfterSeconds", "message"})
"""The fields by which an answer says that it is none yet."""

DEFAULT_TIMEOUT_SECONDS: Final = 10.0
"""The timeout of a webhook that sets none, or none above zero."""

_MAX_NAME_LENGTH: Final = 43
"""The part of a finalizer after the slash may have 63 characters; the controller's kind takes up to 20."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One hook of a controller.

    `webhook` is the raw object of the spec, which the gateway parses; None if it is absent.
    """

    name: HookName
    version: HookVersion
    strict: bool
    webhook: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookKeys:
    """The names of the fields in requests and answers, which depend on the kind of controller."""

    parent: str
    children: str
    edits_metadata: bool
    """Whether an answer may change the parent's own labels and annotations."""
    states_parent: bool = True
    """Whether an answer states the status of the parent, and whether the parent is finalized."""
    asks_for_retry: bool = False
    """Whether an answer may say that it is none yet."""

    @property
    def answer_fields(self) -> frozenset[str]:
        """The fields of an answer."""
        changes = {"labels", "annotations"} if self.edits_metadata else set[str]()
        stated = {"status", "finalized"} if self.states_parent else set[str]()
        retry = RETRY_FIELDS if self.asks_for_retry else set[str]()
        return frozenset({self.children, "resyncAfterSeconds"} | changes | stated | retry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks that a controller declares."""

    sync: Hook | None
    finalize: Hook | None
    customize: Hook | None


def parse_hooks(spec: JsonObject, *, controller: str) -> Hooks:
    """The `hooks` in the `spec` of the controller of this name.

    Raises InvalidSpec if there are none, or one is invalid.
    """
    hooks = fields.object_at(spec, "hooks", "spec")
    if not hooks:
        raise InvalidSpec("spec.hooks", "no hooks defined")
    finalize = parse_hook(hooks, "finalize")
    if finalize is not None and len(controller) > _MAX_NAME_LENGTH:
        raise InvalidSpec("metadata.name", f"has more than {_MAX_NAME_LENGTH} characters: with hooks.finalize, a finalizer is made of it")
    return Hooks(sync=parse_hook(hooks, "sync"), finalize=finalize, customize=parse_hook(hooks, "customize"))


def wanted_timeout(webhook: JsonObject) -> float:
    """The seconds of a webhook's `timeout`, or the default. They may be zero or negative. Raises InvalidSpec."""
    raw = webhook.get("timeout")
    if raw is None or raw == "":
        return DEFAULT_TIMEOUT_SECONDS
    seconds = seconds_of(raw) if isinstance(raw, str) else None
    if seconds is None:
        raise InvalidSpec("webhook.timeout", "must be a duration like 10s or 1m30s")
    return seconds


def parse_hook(hooks: JsonObject, name: HookName) -> Hook | None:
    """The hook of this name in `spec.hooks`; None if it is absent. Raises InvalidSpec."""
    raw = fields.object_at(hooks, name, "spec.hooks")
    return None if raw is None else hook_in(raw, name, f"spec.hooks.{name}")


def hook_in(raw: JsonObject, name: HookName, field: str) -> Hook:
    """The hook that the object at `field` describes. Raises InvalidSpec."""
    webhook = fields.object_at(raw, "webhook", field)
    if webhook is not None:
        _require_address(webhook, f"{field}.webhook")
    version = cast("HookVersion", fields.one_of(raw, "version", field, choices=tuple(_DEFAULT_MODES), default="v1"))
    return Hook(name=name, version=version, strict=_is_strict(webhook or {}, version, f"{field}.webhook"), webhook=webhook)


def _require_address(webhook: JsonObject, field: str) -> None:
    """Raise InvalidSpec unless the webhook has a url, or a service and a path."""
    if unstructured.text(webhook, "url"):
        return
    service = fields.object_at(webhook, "service", field)
    if service is None or not unstructured.text(webhook, "path"):
        raise InvalidSpec(field, "needs a url, or a service and a path")
    fields.required_text(service, "name", f"{field}.service")
    fields.required_text(service, "namespace", f"{field}.service")


def _is_strict(webhook: JsonObject, version: HookVersion, field: str) -> bool:
    """Whether unknown fields in answers are errors. By default, v1 is loose and v2 strict."""
    default = _DEFAULT_MODES[version]
    return fields.one_of(webhook, "responseUnMarshallMode", field, choices=("loose", "strict"), default=default) == "strict"
