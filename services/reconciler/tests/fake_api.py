"""An API server in memory, as far as a reconciler needs one. test_api_contract.py compares it with a real one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from metaloop.common.errors import ApiStatus, Conflict, MetaloopError
from metaloop.common.http.connection import Permit, always
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.kube.errors import AlreadyExists, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import parse_selector_text

Key = tuple[str, str, str]


@dataclass
class FakeApi:
    """Stores objects, counts requests by verb, and fails as `failing` says."""

    objects: dict[Key, JsonObject] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    failing: dict[tuple[str, str], MetaloopError] = field(default_factory=dict)
    """What to raise, by verb and object name, instead of serving the request."""
    user: str = ""
    """On whose behalf it is asked. Empty: the reconciler's own."""
    asked: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Each request: the user, the verb, and the name of the object or the resource."""
    permit: Permit = always
    """Called before each request."""
    versions: list[int] = field(default_factory=lambda: [100])
    """Those that were given out, the last one at the end."""

    @property
    def version(self) -> int:
        """The latest version."""
        return self.versions[-1]

    def permitted_by(self, permit: Permit) -> Self:
        """The same API server. It calls `permit` before each request."""
        return replace(self, permit=permit)

    def acting_as(self, user: str) -> Self:
        """The same API server, asked on behalf of a user."""
        return replace(self, user=user)

    def put(self, info: ResourceInfo, obj: JsonObject) -> JsonObject:
        """Stores `obj`, as if somebody else had written it."""
        metadata = unstructured.metadata(obj)
        self.versions.append(self.version + 1)
        kept = {"uid": f"uid-{self.version}", **metadata, "resourceVersion": str(self.version)}
        stored = self.objects[_key(info, obj)] = {**obj, "metadata": kept}
        return _copy(stored)

    def all_of(self, info: ResourceInfo) -> list[JsonObject]:
        """The stored objects of a resource."""
        return [_copy(obj) for (resource, _, _), obj in self.objects.items() if resource == str(info.id)]

    async def get(self, info: ResourceInfo, namespace: str, name: str) -> JsonObject:
        """The stored object."""
        self._count("get", name)
        return _copy(self._stored((str(info.id), namespace, name)))

    async def list_page(self, info: ResourceInfo, namespace: str = "", params: Mapping[str, str] | None = None) -> JsonObject:
        """The stored objects of a resource that the label selector in `params` matches."""
        self._count("list", info.resource)
        selector = parse_selector_text((params or {}).get("labelSelector", ""))
        found = [obj for obj in self.all_of(info) if selector.matches(unstructured.labels(obj))]
        return {"items": [obj for obj in found if not namespace or unstructured.namespace(obj) == namespace]}

    async def create(self, info: ResourceInfo, obj: JsonObject, *, params: Mapping[str, str] | None = None) -> JsonObject:
        """Stores a new object with a new UID."""
        del params
        self._count("create", unstructured.name(obj))
        if _key(info, obj) in self.objects:
            raise AlreadyExists(_status(409, "AlreadyExists"))
        metadata = {key: value for key, value in unstructured.metadata(obj).items() if key not in {"uid", "resourceVersion"}}
        return self.put(info, {**obj, "metadata": metadata})

    async def replace(
        self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Replaces an object: its status if that is the subresource, and everything but its status otherwise."""
        self._count(f"replace {subresource}".strip(), unstructured.name(obj))
        existing = self._stored(_key(info, obj))
        if params:
            return _copy(obj)
        for precondition in ("uid", "resourceVersion"):
            given = unstructured.text(unstructured.metadata(obj), precondition)
            if given and given != unstructured.text(unstructured.metadata(existing), precondition):
                raise Conflict(f"another {precondition} than {given}")
        changed = {**existing, "status": obj.get("status")} if subresource == "status" else self._without_status_change(info, existing, obj)
        if unstructured.is_deleting(changed) and unstructured.finalizers(existing) and not unstructured.finalizers(changed):
            del self.objects[_key(info, obj)]
            return _copy(changed)
        return _copy(existing) if changed == existing else self.put(info, changed)

    async def patch(  # noqa: PLR0917 - as the API is
        self, info: ResourceInfo, namespace: str, name: str, body: bytes, content_type: str, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Not supported: tests of patches use a real API server, which alone knows how to merge them."""
        raise NotImplementedError(f"{content_type} of {info.id} {namespace}/{name}")

    async def delete(self, info: ResourceInfo, namespace: str, name: str, *, uid: str, resource_version: str = "") -> JsonObject:
        """Deletes an object. One that has finalizers only gets a deletion timestamp."""
        self._count("delete", name)
        key = (str(info.id), namespace, name)
        existing = self._stored(key)
        if unstructured.uid(existing) != uid:
            raise Conflict("another uid")
        if resource_version and unstructured.resource_version(existing) != resource_version:
            raise Conflict("another resourceVersion")
        if unstructured.finalizers(existing):
            return self.put(
                info, {**existing, "metadata": {**unstructured.metadata(existing), "deletionTimestamp": "2026-01-01T00:00:00Z"}}
            )
        return self.objects.pop(key)

    def _count(self, verb: str, name: str) -> None:
        self.permit()
        self.requests[verb] += 1
        self.asked.append((self.user, verb, name))
        if failure := self.failing.get((verb, name)):
            raise failure

    def _stored(self, key: Key) -> JsonObject:
        if key not in self.objects:
            raise NotFound(_status(404, "NotFound"))
        return self.objects[key]

    @staticmethod
    def _without_status_change(info: ResourceInfo, existing: JsonObject, obj: JsonObject) -> JsonObject:
        if not info.has_status:
            return obj
        rest = {key: value for key, value in obj.items() if key != "status"}
        return {**rest, "status": existing["status"]} if "status" in existing else rest


def refused(code: int, reason: str) -> ApiStatus:
    """The status of a refused request."""
    return _status(code, reason)


def _status(code: int, reason: str) -> ApiStatus:
    return ApiStatus(code=code, reason=reason, message=f"the fake says {reason}")


def _key(info: ResourceInfo, obj: JsonObject) -> Key:
    return (str(info.id), unstructured.namespace(obj), unstructured.name(obj))


def _copy(obj: JsonObject) -> JsonObject:
    return loads(dumps(obj))
