"""The configuration that is applied to a child: what its hook asks for, in the form that API servers store.

Rules
    1. Some hooks answer with the very object that they were sent. The API server's own metadata and our annotation in
       such an echo are not part of the configuration.
    2. A whole number is an integer: typed kinds reject `1.0` where they expect an integer, and Go encodes it as `1`,
       so Metacontroller does, too. A number that does not fit into an int64 stays a float.
    3. `stringData` of a Secret is another way to write its `data`. The API server never returns it.
    4. The `rules` of an aggregated ClusterRole belong to the control plane, which replaces whatever a manifest says
       (`rules: []`, in most).
"""

import base64
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import group_of

INT64_LIMIT: Final = 2.0**63
_STRATEGY_FIELDS: Final = {"Deployment": "strategy", "StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
_ROLLING_UPDATE: Final = "rollingUpdate"
_RBAC_GROUP: Final = "rbac.authorization.k8s.io"

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
"""The metadata that only the API server writes."""


def without_echo(desired: JsonObject) -> JsonObject:
    """`desired` without our annotation and without values that only the API server can have set."""
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


def with_whole_numbers(value: JsonValue, *, below: float) -> JsonValue:
    """`value` with whole floats of a magnitude `below` this as integers; the very `value` if there is none."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < below else value
    if isinstance(value, dict):
        changed = {key: whole for key, each in value.items() if (whole := with_whole_numbers(each, below=below)) is not each}
        return {**value, **changed} if changed else value
    if isinstance(value, list):
        elements = [with_whole_numbers(each, below=below) for each in value]
        return elements if any(new is not old for new, old in zip(elements, value, strict=True)) else value
    return value


def has_float(value: JsonValue) -> bool:
    """Whether `value` is or contains a float."""
    if isinstance(value, dict):
        return any(map(has_float, value.values()))
    if isinstance(value, list):
        return any(map(has_float, value))
    return isinstance(value, float)


def as_stored(obj: JsonObject) -> JsonObject:
    """`obj` as the API server stores it: a Secret's strings as `data`, an aggregated ClusterRole without its rules."""
    match obj.get("kind"):
        case "Secret":
            return _with_data_for_strings(obj)
        case "ClusterRole":
            return _without_aggregated_rules(obj)
        case _:
            return obj


def _without_aggregated_rules(obj: JsonObject) -> JsonObject:
    if not obj.get("aggregationRule") or group_of(unstructured.api_version(obj)) != _RBAC_GROUP:
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
    """`observed` without a `rollingUpdate` that contradicts `configuration`; the very `observed` if there is none.

    The API server sets `rollingUpdate` by default, and refuses it beside any strategy but `RollingUpdate`. So it has
    to go when the configuration names another strategy.
    """
    field = _field_with_stale_rolling_update(observed, configuration)
    if not field:
        return observed
    spec = unstructured.child_object(observed, "spec")
    kept = {key: value for key, value in unstructured.child_object(spec, field).items() if key != _ROLLING_UPDATE}
    return {**observed, "spec": {**spec, field: kept}}


def _field_with_stale_rolling_update(observed: JsonObject, configuration: JsonObject) -> str:
    """The field of `spec` that has it; empty if none has."""
    field = _STRATEGY_FIELDS.get(unstructured.kind(configuration), "")
    if not field or group_of(unstructured.api_version(configuration)) != "apps":
        return ""
    desired, present = (unstructured.child_object(unstructured.child_object(obj, "spec"), field) for obj in (configuration, observed))
    is_another = bool(desired.get("type")) and desired.get("type") != present.get("type")
    return field if is_another and _ROLLING_UPDATE in present and _ROLLING_UPDATE not in desired else ""
