"""Answers requests from the store: paths, queries and bodies as Kubernetes defines them. It does no I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from metaloop.common.json import JsonObject, is_object, loads
from metaloop.common.kube.client import MERGE_PATCH
from metaloop.common.kube.transport import Request
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Selector, parse_selector_text
from metaloop.simulation.cluster.objects import Refusal, merge_patched
from metaloop.simulation.cluster.store import Key, Store

_PATH: Final = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<namespace>[^/]+))?/(?P<resource>[^/]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<subresource>status))?"
)
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request is about."""

    info: ResourceInfo
    key: Key
    """Without a name for a collection."""
    subresource: str
    query: Mapping[str, str]

    @property
    def selector(self) -> Selector:
        """The labels that are asked for."""
        return parse_selector_text(self.query.get("labelSelector", ""))

    @property
    def is_dry_run(self) -> bool:
        """Whether nothing is to be stored."""
        return self.query.get("dryRun") == "All"


class Page(NamedTuple):
    """A token that goes on with a list: the version that it shows, and how many objects came before."""

    version: int
    start: int


class Routes:
    """Serves the requests for the objects of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def target(self, request: Request) -> Target:
        """What a request is about. Raises Refusal (404) for a path that is not served."""
        path, _, query = request.target.partition("?")
        match = _PATH.fullmatch(path)
        if match is None:
            raise Refusal(404, "NotFound", f"the server could not find the requested resource: {path}")
        id_ = ResourceId(match["core"] or match["group"], match["resource"])
        collection = self._store.collections.get(id_)
        if collection is None:
            raise Refusal(404, "NotFound", f"the server could not find the requested resource: {path}")
        key = Key(unquote(match["namespace"] or ""), unquote(match["name"] or ""))
        return Target(info=collection.info, key=key, subresource=match["subresource"] or "", query=dict(parse_qsl(query)))

    def answer(self, request: Request) -> JsonObject:  # noqa: PLR0911 - one return for each kind of request
        """The body of a successful answer. Raises Refusal."""
        path = request.target.partition("?")[0]
        if path in {"/api", "/apis"}:
            return discovery([each.info for each in self._store.collections.values()], is_core=path == "/api")
        if path == "/version":
            return {"major": "1", "minor": "36"}
        if path == "/openapi/v3":
            return {"paths": {}}
        target = self.target(request)
        match request.method:
            case "GET" if target.key.name:
                return self._store.get(target.info, target.key)
            case "GET":
                return self._page(target)
            case "POST":
                return self._store.create(target.info, target.key.namespace, _body(request), dry_run=target.is_dry_run)
            case "PUT":
                return self._updated(target, _body(request))
            case "PATCH":
                return self._patched(target, request)
            case "DELETE":
                return self._deleted(target, _body(request))
            case _:
                raise Refusal(405, "MethodNotAllowed", request.method)

    def _updated(self, target: Target, sent: JsonObject) -> JsonObject:
        return self._store.update(target.info, target.key, sent, subresource=target.subresource, dry_run=target.is_dry_run)

    def _patched(self, target: Target, request: Request) -> JsonObject:
        if request.content_type != MERGE_PATCH:
            raise Refusal(415, "UnsupportedMediaType", f"the model knows no patches of type {request.content_type}")
        stored, patch = self._store.get(target.info, target.key), _body(request)
        given = unstructured.metadata(patch)
        if given.get("uid") and given["uid"] != unstructured.uid(stored):
            raise Refusal(422, "Invalid", f"metadata.uid: Invalid value: {given['uid']}: field is immutable")
        merged = merge_patched(stored, patch)
        return self._updated(target, merged if is_object(merged) else {})

    def _deleted(self, target: Target, options: JsonObject) -> JsonObject:
        preconditions = unstructured.child_object(options, "preconditions")
        deleted = self._store.delete(
            target.info,
            target.key,
            uid=unstructured.text(preconditions, "uid"),
            version=unstructured.text(preconditions, "resourceVersion"),
            dry_run=target.is_dry_run,
        )
        if unstructured.uid(deleted) in self._store.by_uid:
            return deleted
        details: JsonObject = {"name": target.key.name, "kind": target.info.resource, "uid": unstructured.uid(deleted)}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _page(self, target: Target) -> JsonObject:
        selector = target.selector
        objects = [obj for obj in self._store.list(target.info, target.key.namespace) if selector.matches(unstructured.labels(obj))]
        page = _page_of(target.query.get("continue", ""), now=self._store.version)
        if page.version < self._store.version:
            # A real server lists the older version from etcd. Its clients must cope with both, and this one is harder.
            raise Refusal(410, "Expired", "the provided continue parameter is too old")
        end = page.start + int(target.query.get("limit") or len(objects) + 1)
        token = f"{page.version}.{end}" if end < len(objects) else ""
        metadata: JsonObject = {"resourceVersion": str(self._store.version), **({"continue": token} if token else {})}
        return {
            "kind": f"{target.info.kind}List",
            "apiVersion": target.info.api_version,
            "metadata": metadata,
            "items": [*objects[page.start : end]],
        }


def _page_of(token: str, *, now: int) -> Page:
    version, _, start = token.partition(".")
    return Page(int(version), int(start)) if token else Page(now, 0)


def _body(request: Request) -> JsonObject:
    body = loads(request.body or b"{}")
    if not is_object(body):
        raise Refusal(400, "BadRequest", "the body is no object")
    return body


def discovery(served: list[ResourceInfo], *, is_core: bool) -> JsonObject:
    """The aggregated list of the core group, or of all others."""
    groups: dict[str, list[ResourceInfo]] = {}
    for info in served:
        if (not info.group) == is_core:
            groups.setdefault(info.group, []).append(info)
    items = [{"metadata": {"name": group}, "versions": _versions(infos)} for group, infos in groups.items()]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": [*items]}  # type: ignore[list-item]


def _versions(infos: list[ResourceInfo]) -> list[JsonObject]:
    by_version: dict[str, list[JsonObject]] = {}
    for info in infos:
        by_version.setdefault(info.api_version.rpartition("/")[2], []).append(_resource(info))
    return [{"version": version, "freshness": "Current", "resources": [*found]} for version, found in by_version.items()]


def _resource(info: ResourceInfo) -> JsonObject:
    return {
        "resource": info.resource,
        "responseKind": {"group": info.group, "version": info.api_version.rpartition("/")[2], "kind": info.kind},
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "subresources": [{"subresource": "status"}] if info.has_status else [],
    }
