"""Reads the rules that a customize hook answers, as queries for related objects.

Rules (specification §14)
    1. A rule either names objects or selects them by labels; both is an error. It either names one namespace or selects
       namespaces; both is an error.
    2. With v1, a namespaced parent sees only objects in its own namespace. Another namespace or a namespace selector is
       an error. With v2, and for a cluster-scoped parent, a rule covers all namespaces unless it says otherwise.
    3. A namespace selector is an error for a cluster-scoped resource. A namespace is ignored.

Only discovery knows the scope of a resource. So the rules that depend on it are checked when the watcher has answered
(`check_scopes`).
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, assert_never

from metaloop.common.api import fields
from metaloop.common.api.hook import HookVersion
from metaloop.common.errors import InvalidAnswer, InvalidSpec, Unavailable
from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Selector, parse_selector
from metaloop.common.observation import ObservedGroup, Related
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery, Where
from metaloop.reconciler.core.hooks.body import body_of, check_misspelt
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.errors import RelatedUnknown

KEYS: Final = frozenset({"relatedResources"})
_RULE_KEYS: Final = frozenset({"apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names"})
_ONLY_IN_V2: Final = "a v1 customize hook is shown nothing outside its parent's namespace"
_FINGERPRINT_BYTES: Final = 12
_VOLATILE: Final = frozenset({"resourceVersion", "managedFields"})


def fingerprint_of(observed: Observed) -> str:
    """A fingerprint of the customize hook's request. While it stays the same, so do the rules."""
    controller, parent = observed.controller, observed.parent
    shown: JsonObject = {
        "controller": [controller.uid, controller.generation, {**unstructured.labels(controller.raw)}],
        "annotations": {**unstructured.annotations(controller.raw)},
        "parent": unstructured.without_metadata(parent, _VOLATILE),
    }
    return blake2b(dumps_sorted(shown), digest_size=_FINGERPRINT_BYTES).hexdigest()


def queries_in(body: bytes, observed: Observed, *, version: HookVersion, is_strict: bool) -> tuple[RelatedQuery, ...]:
    """The queries in the `body` of a customize hook's response. Raises InvalidAnswer, which names the invalid field."""
    read = body_of(body, keys=KEYS, is_strict=is_strict)
    check_misspelt(read, "relatedResources", otherwise="nothing would be related")
    raw = read.fields
    try:
        rules = fields.objects_at(raw, "relatedResources", "")
        only_namespace = visible_namespace(observed, version)
        return tuple(
            [
                _query(rule, f"relatedResources[{index}]", only_namespace=only_namespace, is_strict=is_strict)
                for index, rule in enumerate(rules)
            ]
        )
    except InvalidSpec as error:
        raise InvalidAnswer(error.field.removeprefix("."), str(error).removeprefix(f"{error.field}: ")) from error


def visible_namespace(observed: Observed, version: HookVersion) -> str:
    """The only namespace that the parent sees related objects of. Empty if it sees those of all namespaces."""
    match version:
        case "v1":
            return observed.namespace
        case "v2":
            return ""
        case _:
            assert_never(version)


def related_groups(related: Related) -> tuple[ObservedGroup, ...]:
    """The related objects for a hook's request. Raises RelatedUnknown or Unavailable while some can't be observed."""
    if related.unknown:
        raise RelatedUnknown(f"the API server does not serve {', '.join(map(str, related.unknown))}, which the customize hook asks for")
    if related.waiting:
        raise Unavailable(f"the watcher doesn't see {', '.join(str(info.id) for info in related.waiting)} yet")
    return tuple(related.groups)


def known_resources(related: Related) -> list[ResourceInfo]:
    """The resources whose scope the watcher knows."""
    return [*(group.info for group in related.groups), *related.waiting]


def check_scopes(queries: Sequence[RelatedQuery], infos: Sequence[ResourceInfo], *, only_namespace: str) -> None:
    """Raises InvalidAnswer for a query that does not fit the scope of its resource, or names another namespace."""
    namespaced = {info.id: info.namespaced for info in infos}
    for index, query in enumerate(queries):
        field, is_namespaced = f"relatedResources[{index}]", namespaced.get(query.resource)
        match query.where:
            case InNamespacesWith() if is_namespaced is False:
                raise InvalidAnswer(f"{field}.namespaceSelector", f"{query.resource} is cluster-scoped, so it has no namespaces to select")
            case InNamespace(namespace) if is_namespaced and only_namespace and namespace != only_namespace:
                raise InvalidAnswer(f"{field}.namespace", f"must be {only_namespace}: {_ONLY_IN_V2}")
            case _:
                pass


def _query(rule: JsonObject, field: str, *, only_namespace: str, is_strict: bool) -> RelatedQuery:
    if is_strict and (unknown := sorted(rule.keys() - _RULE_KEYS)):
        raise InvalidSpec(f"{field}.{unknown[0]}", f"is not a field of a rule, which has {', '.join(sorted(_RULE_KEYS))} (strict mode)")
    names = frozenset(fields.texts_at(rule, "names", field))
    namespace = _namespace(rule, field)
    labels = _selector(rule, "labelSelector", field)
    namespaces = _selector(rule, "namespaceSelector", field)
    if names and (labels is not None or namespaces is not None):
        raise InvalidSpec(f"{field}.names", "can't be combined with a selector: a rule names objects or selects them")
    if namespace and namespaces is not None:
        raise InvalidSpec(f"{field}.namespace", "can't be combined with a namespaceSelector: a rule names a namespace or selects some")
    if only_namespace and namespaces is not None:
        raise InvalidSpec(f"{field}.namespaceSelector", f"needs version v2: {_ONLY_IN_V2}")
    where = _where(namespace or only_namespace, namespaces)
    return RelatedQuery(resource=fields.resource_id(rule, field), where=where, labels=labels or Selector(), names=names)


def _where(namespace: str, namespaces: Selector | None) -> Where:
    if namespaces is not None:
        return InNamespacesWith(namespaces)
    return InNamespace(namespace) if namespace else ANYWHERE


def _namespace(rule: JsonObject, field: str) -> str:
    value = rule.get("namespace")
    if value is None or isinstance(value, str):
        return value or ""
    raise InvalidSpec(f"{field}.namespace", "must be a string")


def _selector(rule: JsonObject, key: str, field: str) -> Selector | None:
    """The selector at `key`; None if there is none. An empty selector is one, and selects everything."""
    return parse_selector(rule[key], f"{field}.{key}") if rule.get(key) is not None else None
