"""Parses the target header of a call: which hook of which controller to call, where, and how."""

from dataclasses import dataclass
from typing import Final, get_args

from metaloop.common.api import fields
from metaloop.common.api.hook import DEFAULT_TIMEOUT_SECONDS, HookName, wanted_timeout
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JSONDecodeError, JsonObject, is_object, loads
from metaloop.common.objects.unstructured import text
from metaloop.hookgateway.core.endpoint import Endpoint, resolve
from metaloop.hookgateway.core.etag import CacheKey, EtagPolicy
from metaloop.hookgateway.errors import EndpointInvalid, MalformedCall

HOOKS: Final[tuple[HookName, ...]] = get_args(HookName)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One hook of one controller: its endpoint, its timeout, and whether its answers may be cached."""

    controller: ControllerId
    controller_uid: str
    hook: str
    endpoint: Endpoint
    timeout_seconds: float
    etag: EtagPolicy
    timeout_is_ignored: bool = False
    """Whether the spec's timeout is zero or negative, so that the default is used instead."""

    def cache_key(self, *, parent_uid: str, revision: str) -> CacheKey:
        """The key of the cached answer for this parent revision."""
        return CacheKey(self.controller_uid or str(self.controller), self.hook, self.endpoint.url, parent_uid, revision)


def parse_target(header: bytes) -> Target:
    """The target that a header's value describes.

    Raises MalformedCall if the header does not follow the protocol, EndpointInvalid if the controller's spec can't be
    called.
    """
    raw = _json_object(header)
    controller = fields.object_at(raw, "controller", "target") or {}
    hook, webhook = text(raw, "hook"), raw.get("webhook")
    if hook not in HOOKS or not text(controller, "kind") or not text(controller, "name"):
        raise MalformedCall("the target must name its controller, by kind and name, and one of the hooks " + ", ".join(HOOKS))
    if not is_object(webhook):
        raise EndpointInvalid(f"hooks.{hook}.webhook: is missing")
    try:
        return _target(raw, controller, webhook)
    except InvalidSpec as error:
        raise EndpointInvalid(f"hooks.{hook}: {error}") from error


def _json_object(header: bytes) -> JsonObject:
    try:
        raw = loads(header)
    except JSONDecodeError as error:
        raise MalformedCall("the target is not JSON") from error
    if not is_object(raw):
        raise MalformedCall("the target is not a JSON object")
    return raw


def _target(raw: JsonObject, controller: JsonObject, webhook: JsonObject) -> Target:
    wanted = wanted_timeout(webhook)
    return Target(
        controller=ControllerId(text(controller, "kind"), text(controller, "name")),
        controller_uid=text(controller, "uid"),
        hook=text(raw, "hook"),
        endpoint=resolve(webhook, fields.objects_at(raw, "endpointConfigs", "spec")),
        timeout_seconds=wanted if wanted > 0 else DEFAULT_TIMEOUT_SECONDS,
        timeout_is_ignored=wanted <= 0,
        etag=_etag_policy(webhook),
    )


def _etag_policy(webhook: JsonObject) -> EtagPolicy:
    raw, path = fields.object_at(webhook, "etag", "webhook") or {}, "webhook.etag"
    return EtagPolicy(
        enabled=fields.flag(raw, "enabled", path),
        timeout_seconds=fields.positive_seconds(raw, "cacheTimeoutSeconds", path),
        cleanup_seconds=fields.positive_seconds(raw, "cacheCleanupSeconds", path),
    )
