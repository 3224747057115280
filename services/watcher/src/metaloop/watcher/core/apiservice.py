"""What an APIService makes the API server pass on to another one. Discovery lists it only later."""

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured


def version_passed_on(api_service: JsonObject) -> str:
    """The apiVersion that another API server answers for; empty while it is unavailable, or if there is none."""
    spec = unstructured.child_object(api_service, "spec")
    if unstructured.is_deleting(api_service) or not is_object(spec.get("service")) or not _is_available(api_service):
        return ""
    return f"{unstructured.text(spec, 'group')}/{unstructured.text(spec, 'version')}"


def _is_available(api_service: JsonObject) -> bool:
    conditions = unstructured.child_object(api_service, "status").get("conditions")
    found = [each for each in conditions if is_object(each)] if is_array(conditions) else []
    return any(each.get("type") == "Available" and each.get("status") == "True" for each in found)
