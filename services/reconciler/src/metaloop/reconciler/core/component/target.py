"""Targets: the objects that a hook desires, made ready to be deployed.

A manifest becomes a target only if it is valid. One that is not makes the whole answer invalid, so that nothing is
touched.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from metaloop.common.api.policies import Policies
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, JsonValue, is_object, type_name
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo, version_of
from metaloop.reconciler.core.component.digest import object_digest
from metaloop.reconciler.core.component.identity import Marks, ObjectKey, key_of
from metaloop.reconciler.core.component.managed_types import ManagedType, is_managed, managed_types_of
from metaloop.reconciler.core.component.order import CRD
from metaloop.reconciler.core.component.settings import ObjectSettings, object_settings


class KnownKinds(Protocol):
    """The kinds that the API server serves, as far as is known."""

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource whose objects have this kind; None if it is not served."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An object that is desired, with its namespace filled in, and without our marks."""

    obj: JsonObject
    key: ObjectKey
    settings: ObjectSettings
    digest: str
    info: ResourceInfo | None
    """Its resource. None if an APIService of the component is yet to make it known."""
    managed_types: tuple[ManagedType, ...]
    """The types that it makes known."""

    @property
    def version(self) -> str:
        """The version of its apiVersion."""
        return version_of(unstructured.api_version(self.obj))


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """What the targets of one component have in common."""

    namespace: str
    """Of objects that name none themselves, if they are in one."""
    marks: Marks
    policies: Policies
    digest: str
    """The digest of the component."""
    field: str = "children"
    """Where the manifests are in the hook's answer."""


def targets_of(manifests: Sequence[JsonObject], placement: Placement, *, kinds: KnownKinds) -> tuple[Target, ...]:
    """The targets in their order. Raises InvalidAnswer for the first manifest that can't be deployed."""
    for index, manifest in enumerate(manifests):
        _require_well_formed(manifest, f"{placement.field}[{index}]")
    scopes = _Scopes(kinds, manifests)
    targets = [_target(manifest, placement, scopes, f"{placement.field}[{index}]") for index, manifest in enumerate(manifests)]
    seen: set[ObjectKey] = set()
    for index, target in enumerate(targets):
        if target.key in seen:
            raise InvalidAnswer(f"{placement.field}[{index}]", f"{target.key} is there twice")
        seen.add(target.key)
    return tuple(targets)


def _target(manifest: JsonObject, placement: Placement, scopes: "_Scopes", field: str) -> Target:
    info = scopes.info(manifest, field)
    obj = _placed(_with_data(placement.marks.off(manifest), field), info, placement.namespace, field)
    settings = object_settings(obj, prefix=placement.marks.prefix, policies=placement.policies, field=field)
    return Target(
        obj=obj,
        key=key_of(obj),
        settings=settings,
        digest=object_digest(obj, policy=settings.reconcile, component=placement.digest),
        info=info,
        managed_types=managed_types_of(obj),
    )


# -- well-formed manifests ---------------------------------------------------------------------------------------------


def _require_well_formed(manifest: JsonObject, field: str) -> None:
    metadata = manifest.get("metadata")
    if not unstructured.api_version(manifest):
        raise InvalidAnswer(f"{field}.apiVersion", "must be a non-empty string")
    if not is_object(metadata):
        raise InvalidAnswer(f"{field}.metadata", f"must be an object, not {type_name(metadata)}")
    if "generateName" in metadata:
        raise InvalidAnswer(f"{field}.metadata.generateName", "is not allowed: each object needs a name of its own")
    if not unstructured.name(manifest):
        raise InvalidAnswer(f"{field}.metadata.name", "must be a non-empty string")
    for name in ("labels", "annotations"):
        _require_strings(metadata.get(name), f"{field}.metadata.{name}")


def _require_strings(value: JsonValue, field: str) -> None:
    if value is None:
        return
    if not is_object(value):
        raise InvalidAnswer(field, f"must be an object, not {type_name(value)}")
    for key, item in value.items():
        if not isinstance(item, str):
            raise InvalidAnswer(f"{field}[{key}]", f"must be a string, not {type_name(item)}")


def _with_data(obj: JsonObject, field: str) -> JsonObject:
    """A Secret with its `stringData` in its `data`, where it can be compared. Other objects as they are."""
    if (unstructured.api_version(obj), unstructured.kind(obj)) != ("v1", "Secret") or "stringData" not in obj:
        return obj
    stated = obj.get("stringData")
    _require_strings(stated, f"{field}.stringData")
    texts = unstructured.strings(stated)
    encoded: JsonObject = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
    rest = {key: value for key, value in obj.items() if key != "stringData"}
    return {**rest, "data": {**unstructured.child_object(obj, "data"), **encoded}}


def _placed(obj: JsonObject, info: ResourceInfo | None, namespace: str, field: str) -> JsonObject:
    """`obj` in its namespace: the given one if it names none, and none if its kind is in none."""
    metadata = unstructured.metadata(obj)
    if info is None:
        return obj
    if not info.namespaced:
        return unstructured.without_metadata(obj, {"namespace"})
    if metadata.get("namespace"):
        return obj
    if not namespace:
        raise InvalidAnswer(f"{field}.metadata.namespace", f"is missing: the component has no namespace for {key_of(obj)}")
    return {**obj, "metadata": {**metadata, "namespace": namespace}}


# -- the scope of kinds ------------------------------------------------------------------------------------------------


class _Scopes:
    """The resources of kinds: those that the manifests define themselves, and those that the API server serves."""

    def __init__(self, kinds: KnownKinds, manifests: Sequence[JsonObject]) -> None:
        self._kinds = kinds
        self._defined = {(info.api_version, info.kind): info for manifest in manifests for info in defined_resources(manifest)}
        self._passed_on = [each for manifest in manifests if not _is_crd(manifest) for each in managed_types_of(manifest)]
        """The types of the API services among the manifests."""

    def info(self, manifest: JsonObject, field: str) -> ResourceInfo | None:
        """The resource of a manifest's kind; None if an API service is yet to make it known."""
        api_version, kind = unstructured.api_version(manifest), unstructured.kind(manifest)
        info = self._defined.get((api_version, kind)) or self._kinds.by_kind(api_version, kind)
        if info is None and not is_managed(self._passed_on, group=key_of(manifest).group, version=version_of(api_version), kind=kind):
            raise InvalidAnswer(f"{field}.kind", f"{kind} is not served in {api_version}, and no object of the component defines it")
        return info


def defined_resources(obj: JsonObject) -> Iterator[ResourceInfo]:
    """The resources that a CustomResourceDefinition defines, one for each version that is served."""
    if not _is_crd(obj):
        return
    spec = unstructured.child_object(obj, "spec")
    names = unstructured.child_object(spec, "names")
    for version in unstructured.child_objects(spec, "versions"):
        if version.get("served") is True:
            yield ResourceInfo(
                api_version=f"{unstructured.text(spec, 'group')}/{unstructured.text(version, 'name')}",
                resource=unstructured.text(names, "plural"),
                kind=unstructured.text(names, "kind"),
                namespaced=spec.get("scope") == _NAMESPACED,
                has_status="status" in unstructured.child_object(version, "subresources"),
            )


_NAMESPACED: Final = "Namespaced"


def _is_crd(obj: JsonObject) -> bool:
    return unstructured.kind(obj) == CRD.kind and key_of(obj).group == CRD.group
