"""What a CustomResourceDefinition makes the API server serve. Discovery lists it only later."""

from collections.abc import Mapping

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.record import ObjectKey


def resources_of(crd: JsonObject) -> tuple[ResourceInfo, ...]:
    """The resources that are served for `crd`, one for each version.

    There are none before it is established. While it is being deleted they stay: its objects are finalized first.
    """
    if not _is_established(crd):
        return ()
    spec = unstructured.child_object(crd, "spec")
    names = unstructured.child_object(spec, "names")
    return tuple(
        ResourceInfo(
            api_version=f"{unstructured.text(spec, 'group')}/{unstructured.text(version, 'name')}",
            resource=unstructured.text(names, "plural"),
            kind=unstructured.text(names, "kind"),
            namespaced=unstructured.text(spec, "scope") == "Namespaced",
            has_status=is_object(unstructured.child_object(version, "subresources").get("status")),
        )
        for version in _objects(spec.get("versions"))
        if version.get("served") is True
    )


class CrdResources:
    """What all CRDs make the API server serve. They are ahead of discovery, in both directions, so they prevail."""

    def __init__(self) -> None:
        self._served: dict[ObjectKey, tuple[ResourceInfo, ...]] = {}
        self._withdrawn: set[ResourceId] = set()
        """What a CRD served once. Discovery may list it for a moment longer, and even once more after it did not."""

    def take(self, key: ObjectKey, crd: JsonObject | None) -> None:
        """The CRD of `key` is `crd` now; `None`: it is gone."""
        before = {info.id for info in self._served.pop(key, ())}
        if crd is not None:
            self._served[key] = resources_of(crd)
        now = {info.id for info in self._served.get(key, ())}
        self._withdrawn = (self._withdrawn | before) - now

    def pass_on(self, api_version: str) -> None:
        """Another API server serves `api_version` from now on, so discovery decides what there is."""
        self._withdrawn = {each for each in self._withdrawn if each.api_version != api_version}

    def prevail_over(self, discovered: Mapping[ResourceId, ResourceInfo]) -> dict[ResourceId, ResourceInfo]:
        """All that is served: what discovery found, corrected by what the CRDs say."""
        of_crds = {info.id: info for infos in self._served.values() for info in infos}
        return {id_: info for id_, info in discovered.items() if id_ not in self._withdrawn} | of_crds


def _is_established(crd: JsonObject) -> bool:
    conditions = _objects(unstructured.child_object(crd, "status").get("conditions"))
    return any(entry.get("type") == "Established" and entry.get("status") == "True" for entry in conditions)


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if is_object(item)] if isinstance(value, list) else []
