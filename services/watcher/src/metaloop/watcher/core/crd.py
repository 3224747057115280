"""What a CustomResourceDefinition makes the API server serve. Discovery lists it only later."""

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo


def resources_of(crd: JsonObject) -> tuple[ResourceInfo, ...]:
    """The resources that are served for `crd`, one for each version.

    There are none before it is established, and none once it is being deleted.
    """
    if unstructured.is_deleting(crd) or not _is_established(crd):
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


def _is_established(crd: JsonObject) -> bool:
    conditions = _objects(unstructured.child_object(crd, "status").get("conditions"))
    return any(entry.get("type") == "Established" and entry.get("status") == "True" for entry in conditions)


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if is_object(item)] if isinstance(value, list) else []
