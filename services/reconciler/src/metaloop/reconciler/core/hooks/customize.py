"""Related-object rules of the customize hook: which objects they select, for this parent and this wire version.

Rules (specification §14)
    1. A rule names objects, or selects them by labels: both at once is an error. It names one namespace, or selects namespaces: both at once is an error.
    2. v1 shows a namespaced parent nothing outside its namespace: another namespace, or a selector of namespaces, is an error, and without one it is
       the parent's own. v2, and any parent that is cluster-scoped, look everywhere unless the rule says where.
    3. A selector of namespaces makes no sense of a cluster-scoped resource; a namespace means nothing to it.

What a resource's scope is only discovery knows, so rules that depend on it are held against the answer of the watcher (`check_scopes`).
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from metaloop.common.api import fields
from metaloop.common.api.hook import HookVersion
from metaloop.common.errors import InvalidAnswer, InvalidSpec, Unavailable
from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Selector, parse_selector
from metaloop.common.observation import ObservedGroup, Related
from metaloop.common.related_query import ANYWHERE, InNamespace, InNamespacesWith, RelatedQuery, Where
from metaloop.reconciler.core.hooks.body import body_of
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.errors import RelatedUnknown

KEYS: Final = frozenset({"relatedResources"})
_RULE_KEYS: Final = frozenset({"apiVersion", "resource", "labelSelector", "namespaceSelector", "namespace", "names"})
_ONLY_IN_V2: Final = "a v1 customize hook is shown nothing outside of its parent's namespace"
_FINGERPRINT_BYTES: Final = 12
_VOLATILE: Final = frozenset({"resourceVersion", "managedFields"})


def fingerprint_of(observed: Observed) -> str:
    """A name for what a customize hook would be shown: as long as it is the same, so are the rules."""
    controller, parent = observed.controller, observed.parent
    metadata = {key: value for key, value in unstructured.metadata(parent).items() if key not in _VOLATILE}
    shown: JsonObject = {
        "controller": [controller.uid, controller.generation, {**unstructured.labels(controller.raw)}],
        "annotations": {**unstructured.annotations(controller.raw)},
        "parent": {**parent, "metadata": metadata},
    }
    return blake2b(dumps_sorted(shown), digest_size=_FINGERPRINT_BYTES).hexdigest()


def queries_in(body: bytes, observed: Observed, *, version: HookVersion, is_strict: bool) -> tuple[RelatedQuery, ...]:
    """What the answer in the `body` of a customize hook's response asks to follow. Raises InvalidAnswer that names the field at fault."""
    raw = body_of(body, keys=KEYS, is_strict=is_strict).fields
    try:
        rules = fields.objects_at(raw, "relatedResources", "")
        home = visible_namespace(observed, version)
        return tuple([_query(rule, f"relatedResources[{index}]", home=home, is_strict=is_strict) for index, rule in enumerate(rules)])
    except InvalidSpec as error:
        raise InvalidAnswer(error.field.removeprefix("."), str(error).removeprefix(f"{error.field}: ")) from error


def visible_namespace(observed: Observed, version: HookVersion) -> str:
    """The only namespace that the parent is shown anything of; empty where it may look anywhere."""
    return observed.namespace if version == "v1" else ""


def related_groups(related: Related) -> tuple[ObservedGroup, ...]:
    """The related objects, as the hooks are shown them. Raises RelatedUnknown or Unavailable where they aren't the whole yet."""
    if related.unknown:
        raise RelatedUnknown(f"the API server does not serve {', '.join(map(str, related.unknown))}, which the customize hook asks for")
    if related.waiting:
        raise Unavailable(f"the watcher doesn't see {', '.join(str(info.id) for info in related.waiting)} yet")
    return tuple(related.groups)


def known_resources(related: Related) -> list[ResourceInfo]:
    """The resources whose scope the watcher knows."""
    return [*(group.info for group in related.groups), *related.waiting]


def check_scopes(queries: Sequence[RelatedQuery], infos: Sequence[ResourceInfo], *, visible_namespace: str) -> None:
    """Raises InvalidAnswer for a rule that makes no sense of its resource's scope; `visible_namespace` is the only namespace that may be named, if any."""
    namespaced = {info.id: info.namespaced for info in infos}
    for index, query in enumerate(queries):
        field, is_namespaced = f"relatedResources[{index}]", namespaced.get(query.resource)
        match query.where:
            case InNamespacesWith() if is_namespaced is False:
                raise InvalidAnswer(f"{field}.namespaceSelector", f"{query.resource} is cluster-scoped, and in no namespace")
            case InNamespace(namespace) if is_namespaced and visible_namespace and namespace != visible_namespace:
                raise InvalidAnswer(f"{field}.namespace", f"must be {visible_namespace}: {_ONLY_IN_V2}")
            case _:
                pass


def _query(rule: JsonObject, field: str, *, home: str, is_strict: bool) -> RelatedQuery:
    if is_strict and (unknown := sorted(rule.keys() - _RULE_KEYS)):
        raise InvalidSpec(f"{field}.{unknown[0]}", f"is no field of a rule, which has {', '.join(sorted(_RULE_KEYS))} (read strictly)")
    names = frozenset(fields.texts_at(rule, "names", field))
    namespace = _namespace(rule, field)
    labels = _selector(rule, "labelSelector", field)
    namespaces = _selector(rule, "namespaceSelector", field)
    if names and (labels is not None or namespaces is not None):
        raise InvalidSpec(f"{field}.names", "can't stand beside a selector: objects are named, or selected")
    if namespace and namespaces is not None:
        raise InvalidSpec(f"{field}.namespace", "can't stand beside a namespaceSelector: a namespace is named, or selected")
    if home and namespaces is not None:
        raise InvalidSpec(f"{field}.namespaceSelector", f"needs version v2: {_ONLY_IN_V2}")
    where = _where(namespace or home, namespaces)
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
    """The selector at `key`; None where there is none. An empty one is one: it selects everything."""
    return parse_selector(rule[key], f"{field}.{key}") if rule.get(key) is not None else None
