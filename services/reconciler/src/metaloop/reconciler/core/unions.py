"""What a wish for one member of a union rules out: a member that the API server filled in by default.

The update strategy of a workload of Kubernetes' own is `type: RollingUpdate` unless somebody says otherwise, and then has a `rollingUpdate` that nobody asked for.
Another type is refused for as long as that is there.
"""

from typing import Final

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of

_STRATEGIES: Final = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
_MEMBER: Final = "rollingUpdate"


def without_ruled_out(observed: JsonObject, wish: JsonObject) -> JsonObject:
    """`observed` without what `wish` rules out; the very `observed` where that is nothing."""
    field = _ruled_out(observed, wish)
    if not field:
        return observed
    spec = unstructured.child_object(observed, "spec")
    kept = {key: value for key, value in unstructured.child_object(spec, field).items() if key != _MEMBER}
    return {**observed, "spec": {**spec, field: kept}}


def _ruled_out(observed: JsonObject, wish: JsonObject) -> str:
    """The field of `spec` that has it; empty where there is none."""
    field = _STRATEGIES.get(unstructured.kind(wish), "")
    if not field or group_of(unstructured.api_version(wish)) != "apps":
        return ""
    wanted, there = (unstructured.child_object(unstructured.child_object(obj, "spec"), field) for obj in (wish, observed))
    is_another = bool(wanted.get("type")) and wanted.get("type") != there.get("type")
    return field if is_another and _MEMBER in there and _MEMBER not in wanted else ""
