"""What a hook wants of a child, in the form that API servers keep.

Rules
    1. Some hooks answer with the very object they were shown. What such an echo carries of the API server's own, and of our own annotation, is desired by nobody.
    2. A whole number is an integer: typed kinds refuse `1.0` where they expect one, and Go, as which Metacontroller sends it, writes `1`. One that is too large for
       an integer of Kubernetes stays the float that it is there.
    3. A Secret's `stringData` is only another way to write its `data`: the API server never shows it again.
    4. The `rules` of an aggregated ClusterRole are the control plane's: it replaces whatever a manifest says (`rules: []`, in most).
"""

import base64
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of

_STRATEGIES: Final = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
_MEMBER: Final = "rollingUpdate"
_INT64: Final = 2.0**63
_RBAC: Final = "rbac.authorization.k8s.io"

SYSTEM_METADATA: Final = frozenset(
    {
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
    }
)


def without_echo(desired: JsonObject) -> JsonObject:
    """`desired` without our annotation and without values that only the API server can have given it."""
    metadata = unstructured.metadata(desired)
    echoed = [key for key in SYSTEM_METADATA if metadata.get(key)]
    annotations = metadata.get("annotations")
    is_annotated = is_object(annotations) and LAST_APPLIED_ANNOTATION in annotations
    if not echoed and not is_annotated:
        return desired
    kept = {key: value for key, value in metadata.items() if key not in echoed}
    if is_object(annotations) and is_annotated:
        kept["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED_ANNOTATION}
    return {**desired, "metadata": kept}


def without_system_fields(obj: JsonObject) -> JsonObject:
    """`obj` without its status and without the metadata that only the API server writes."""
    metadata = unstructured.metadata(obj)
    if "status" not in obj and SYSTEM_METADATA.isdisjoint(metadata):
        return obj
    own = {key: value for key, value in obj.items() if key != "status"}
    own["metadata"] = {key: value for key, value in metadata.items() if key not in SYSTEM_METADATA}
    return own


def with_whole_numbers(value: JsonValue) -> JsonValue:
    """`value` with each float that is a whole number as an integer; the very `value` where there is none."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _INT64 else value
    if isinstance(value, dict):
        changed = {key: whole for key, each in value.items() if (whole := with_whole_numbers(each)) is not each}
        return {**value, **changed} if changed else value
    if isinstance(value, list):
        elements = [with_whole_numbers(each) for each in value]
        return elements if any(new is not old for new, old in zip(elements, value, strict=True)) else value
    return value


def as_stored(obj: JsonObject) -> JsonObject:
    """`obj` with what is kept of it: a Secret's strings in its `data`, and no rules of an aggregated ClusterRole."""
    match obj.get("kind"):
        case "Secret":
            return _with_data_for_strings(obj)
        case "ClusterRole":
            return _without_aggregated_rules(obj)
        case _:
            return obj


def _without_aggregated_rules(obj: JsonObject) -> JsonObject:
    if not obj.get("aggregationRule") or group_of(unstructured.api_version(obj)) != _RBAC:
        return obj
    return {key: value for key, value in obj.items() if key != "rules"}


def _with_data_for_strings(obj: JsonObject) -> JsonObject:
    if "stringData" not in obj or obj.get("apiVersion") != "v1":
        return obj
    strings = obj["stringData"] or {}
    if not is_object(strings) or not all(isinstance(text, str) for text in strings.values()):
        return obj  # the API server says what is wrong with it
    encoded: JsonObject = {key: base64.b64encode(str(text).encode()).decode() for key, text in strings.items()}
    kept = {key: value for key, value in obj.items() if key != "stringData"}
    return {**kept, "data": {**unstructured.child_object(obj, "data"), **encoded}} if encoded else kept


def without_stale_rolling_update(observed: JsonObject, configuration: JsonObject) -> JsonObject:
    """`observed` without what `configuration` rules out; the very `observed` where that is nothing."""
    field = _ruled_out(observed, configuration)
    if not field:
        return observed
    spec = unstructured.child_object(observed, "spec")
    kept = {key: value for key, value in unstructured.child_object(spec, field).items() if key != _MEMBER}
    return {**observed, "spec": {**spec, field: kept}}


def _ruled_out(observed: JsonObject, configuration: JsonObject) -> str:
    """The field of `spec` that has it; empty where there is none."""
    field = _STRATEGIES.get(unstructured.kind(configuration), "")
    if not field or group_of(unstructured.api_version(configuration)) != "apps":
        return ""
    wanted, there = (unstructured.child_object(unstructured.child_object(obj, "spec"), field) for obj in (configuration, observed))
    is_another = bool(wanted.get("type")) and wanted.get("type") != there.get("type")
    return field if is_another and _MEMBER in there and _MEMBER not in wanted else ""
