"""The rules by which an API server changes one object: functions of the stored object and of what was sent."""

from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo

_KEPT: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "namespace")
"""What nobody but the server writes."""
_STATUS_KEEPS: Final = ("labels", "annotations", "finalizers", "ownerReferences")


class Refusal(Exception):
    """The server refuses a request."""

    def __init__(self, code: int, reason: str, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.retry_after_seconds = code, reason, retry_after_seconds

    @property
    def status(self) -> JsonObject:
        """The `metav1.Status` of the answer."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What the server gives a new object."""

    uid: str
    at: str
    """The time, as Kubernetes writes it."""


def created(info: ResourceInfo, sent: JsonObject, *, namespace: str, stamp: Stamp) -> JsonObject:
    """The object that a create stores. Its version is not set yet."""
    metadata = {key: value for key, value in unstructured.metadata(sent).items() if key not in {*_KEPT, "resourceVersion", "managedFields"}}
    metadata |= {"uid": stamp.uid, "creationTimestamp": stamp.at}
    if info.namespaced:
        metadata["namespace"] = namespace
    if has_generation(info):
        metadata["generation"] = 1
    rest = {key: value for key, value in sent.items() if key != "status" or not info.has_status}
    return {**rest, "apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}


def updated(info: ResourceInfo, stored: JsonObject, sent: JsonObject, *, subresource: str) -> JsonObject:
    """The object after an update by `sent`; equal to `stored` where nothing changes. Raises Refusal."""
    _require_same(info, stored, sent)
    if subresource == "status":
        return _with_status(stored, sent)
    kept = {key: value for key, value in unstructured.metadata(stored).items() if key in _KEPT}
    metadata = {key: value for key, value in unstructured.metadata(sent).items() if key not in {*_KEPT, "managedFields"}}
    metadata = _without_empty({**metadata, **kept, "resourceVersion": unstructured.resource_version(stored)})
    changed: JsonObject = {**sent, "apiVersion": info.api_version, "kind": info.kind, "metadata": metadata}
    if info.has_status:
        changed = _replaced(changed, "status", stored.get("status"))
    _require_no_new_finalizers(info, stored, changed)
    if has_generation(info) and _content(changed) != _content(stored):
        metadata["generation"] = unstructured.generation(stored) + 1
    return changed


def deletion_begun(info: ResourceInfo, stored: JsonObject, *, at: str) -> JsonObject:
    """An object with finalizers once its deletion began."""
    if unstructured.is_deleting(stored):
        return stored
    metadata: JsonObject = {**unstructured.metadata(stored), "deletionTimestamp": at, "deletionGracePeriodSeconds": 0}
    if has_generation(info):
        metadata["generation"] = unstructured.generation(stored) + 1
    return {**stored, "metadata": metadata}


def merge_patched(target: JsonValue, patch: JsonValue) -> JsonValue:
    """RFC 7396."""
    if not is_object(patch):
        return patch
    merged: JsonObject = {**target} if is_object(target) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patched(merged.get(key), value)
    return merged


def has_generation(info: ResourceInfo) -> bool:
    """Whether the server counts changes of the kind's objects: it does for custom resources."""
    return ("." in info.group and not info.group.endswith(".k8s.io")) or info.group == "metacontroller.k8s.io"


def needs_version(info: ResourceInfo) -> bool:
    """Whether an update must say which version it was made from, as for custom resources."""
    return has_generation(info)


def _require_same(info: ResourceInfo, stored: JsonObject, sent: JsonObject) -> None:
    name, where = unstructured.name(stored), f'"{unstructured.name(stored)}"'
    given, known = unstructured.metadata(sent), unstructured.metadata(stored)
    if given.get("uid") and given["uid"] != known["uid"]:
        raise Refusal(409, "Conflict", f"Precondition failed: UID in precondition: {given['uid']}, UID in object meta: {known['uid']}")
    if not given.get("resourceVersion") and needs_version(info):
        raise Refusal(422, "Invalid", f"{info.kind} {where} is invalid: metadata.resourceVersion: must be specified for an update")
    if given.get("resourceVersion") and given["resourceVersion"] != known["resourceVersion"]:
        raise Refusal(409, "Conflict", f"Operation cannot be fulfilled on {info.resource} {where}: the object has been modified")
    if given.get("name") not in {None, name}:
        raise Refusal(400, "BadRequest", "the name of the object does not match the name on the URL")


def _require_no_new_finalizers(info: ResourceInfo, stored: JsonObject, changed: JsonObject) -> None:
    if unstructured.is_deleting(stored) and set(unstructured.finalizers(changed)) - set(unstructured.finalizers(stored)):
        problem = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted"
        raise Refusal(422, "Invalid", f"{info.kind} is invalid: {problem}")


def _with_status(stored: JsonObject, sent: JsonObject) -> JsonObject:
    return _replaced(stored, "status", sent.get("status"))


def _replaced(obj: JsonObject, key: str, value: JsonValue) -> JsonObject:
    rest = {name: part for name, part in obj.items() if name != key}
    return rest if value is None else {**rest, key: value}


def _without_empty(metadata: JsonObject) -> JsonObject:
    return {key: value for key, value in metadata.items() if value not in ({}, []) or key not in _STATUS_KEEPS}


def _content(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in {"metadata", "status", "apiVersion", "kind"}}
