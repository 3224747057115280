"""What watcher and reconcilers need to serve some controllers, and nothing else.

Rules:

- Nothing here reads a cluster. Needs follow from the specs of controllers alone.
- A need has no wildcard: each names one resource.
- What a customize hook selects, or a generator returns, is not in its controller's spec: the caller has to name these
  resources.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from metaloop.common.api import API_VERSION, ON_DELETION_ANNOTATION, RELEASE_FINALIZERS
from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, group_of
from metaloop.watcher.core.kinds.registry import WORLDS


class Service(StrEnum):
    """A service that has permissions in the cluster."""

    WATCHER = "watcher"
    RECONCILER = "reconciler"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Need:
    """A service may use some verbs on one resource."""

    group: str
    resource: str
    """With its subresource, as `things/status`."""
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()
    """Only objects of these names; empty for all."""


_OUR_GROUP = group_of(API_VERSION)
_READ = ("get", "list", "watch")
_PARENT = ("get", "patch", "update")
_STATUS = ("patch", "update")
_CHILD = ("create", "delete", "get", "patch", "update")
_EVENTS = Need(group="", resource="events", verbs=("create", "patch"))
_CLUSTER_UID = Need(group="", resource="namespaces", verbs=("get",), names=("kube-system",))
_NAMESPACES = ResourceId("v1", "namespaces")


def needs_of(
    service: Service, controllers: Sequence[Controller], *, related: Sequence[ResourceId] = (), generated: Sequence[ResourceId] = ()
) -> list[Need]:
    """What a service needs to serve these controllers; one need for each resource, in order.

    `related` are the resources that customize hooks select, `generated` those that generators return.
    """
    match service:
        case Service.WATCHER:
            needs = _of_watcher(controllers, related=related, generated=generated)
        case Service.RECONCILER:
            needs = _of_reconciler(controllers, generated=generated)
    return _merged(needs)


def rules_of(needs: Iterable[Need]) -> list[JsonObject]:
    """Needs as the rules of a role; those of one group with the same verbs are one rule."""
    keyed = sorted(needs, key=_key)
    rules: list[JsonObject] = []
    for (group, verbs, names), alike in groupby(keyed, key=_key):
        rule: JsonObject = {"apiGroups": [group], "resources": [need.resource for need in alike], "verbs": [*verbs]}
        rules.append({**rule, "resourceNames": [*names]} if names else rule)
    return rules


def selects_related(controllers: Iterable[Controller]) -> list[Controller]:
    """The controllers with a customize hook, whose related resources no spec names."""
    return [controller for controller in controllers if controller.hooks.customize is not None]


def generates(controllers: Iterable[Controller]) -> list[Controller]:
    """The controllers whose hooks decide which resources they create, as their specs declare none."""
    return [controller for controller in controllers if controller.subscribes]


def _key(need: Need) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    return need.group, need.verbs, need.names


def _of_watcher(controllers: Sequence[Controller], *, related: Sequence[ResourceId], generated: Sequence[ResourceId]) -> Iterator[Need]:
    yield from (_EVENTS, _CLUSTER_UID)
    yield Need(group="apiextensions.k8s.io", resource="customresourcedefinitions", verbs=_READ)
    yield Need(group="apiregistration.k8s.io", resource="apiservices", verbs=_READ)
    for kind in KINDS.values():
        yield Need(group=kind.resource.group, resource=kind.resource.resource, verbs=(*_READ, "patch"))
        yield Need(group=kind.resource.group, resource=f"{kind.resource.resource}/status", verbs=("patch",))
    yield Need(group=_OUR_GROUP, resource="controllerrevisions", verbs=_READ)
    if related or selects_related(controllers):
        yield _need(_NAMESPACES, _READ)
    for resource in (*related, *generated):
        yield _need(resource, _READ)
    for controller in controllers:
        if unstructured.annotations(controller.raw).get(ON_DELETION_ANNOTATION) == RELEASE_FINALIZERS:
            for parent in controller.parents:
                yield _need(parent.resource, ("patch",))
        for resource in WORLDS[controller.kind].required(controller):
            yield _need(resource, _READ)


def _of_reconciler(controllers: Sequence[Controller], *, generated: Sequence[ResourceId]) -> Iterator[Need]:
    yield from (_EVENTS, _CLUSTER_UID)
    for resource in generated:
        yield _need(resource, _CHILD)
    for controller in controllers:
        for parent in controller.parents:
            yield _need(parent.resource, _PARENT)
            yield _need(parent.resource, _STATUS, subresource="status")
            # For blocking owner references, where the admission plugin OwnerReferencesPermissionEnforcement is on.
            yield _need(parent.resource, ("update",), subresource="finalizers")
        for child in controller.children:
            yield _need(child.resource, _CHILD)
        for account in controller.impersonated:
            yield Need(group="", resource="serviceaccounts", verbs=("impersonate",), names=(account,))
        if any(child.rolls for child in controller.children):
            yield Need(group=_OUR_GROUP, resource="controllerrevisions", verbs=_CHILD)


def _need(resource: ResourceId, verbs: tuple[str, ...], *, subresource: str = "") -> Need:
    name = f"{resource.resource}/{subresource}" if subresource else resource.resource
    return Need(group=resource.group, resource=name, verbs=verbs)


def _merged(needs: Iterable[Need]) -> list[Need]:
    """One need for each resource and names, with all of its verbs."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for need in needs:
        verbs.setdefault((need.group, need.resource, need.names), set()).update(need.verbs)
    return [
        Need(group=group, resource=resource, verbs=tuple(sorted(used)), names=names)
        for (group, resource, names), used in sorted(verbs.items())
    ]
