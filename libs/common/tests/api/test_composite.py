"""CompositeController specs: their values, and the field that an error names."""

import copy

import pytest

from metaloop.common.api.composite import parse_composite
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceId

VALID: JsonObject = {
    "metadata": {"name": "hello", "uid": "u", "generation": 2, "resourceVersion": "9"},
    "spec": {
        "parentResource": {"apiVersion": "ex.io/v1", "resource": "hellos", "labelSelector": {"matchLabels": {"a": "b"}}},
        "childResources": [{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}],
        "hooks": {"sync": {"webhook": {"url": "http://hook/sync"}}},
        "resyncPeriodSeconds": 3600,
    },
}


def with_field(path: str, value: JsonValue) -> JsonObject:
    """`VALID` with one field of its spec set."""
    raw = copy.deepcopy(VALID)
    at: JsonObject = raw["spec"]  # type: ignore[assignment]
    *parents, last = path.split(".")
    for key in parents:
        at = at[key]  # type: ignore[assignment]
    at[last] = value
    return raw


def test_defaults_are_those_of_the_api():
    controller = parse_composite(VALID)

    assert [rule.resource for rule in controller.parents] == [ResourceId("ex.io/v1", "hellos")]
    assert controller.revision_field_paths == ("spec",)
    assert controller.children[0].method == "InPlace"
    assert controller.hooks.sync is not None
    assert (controller.hooks.sync.version, controller.hooks.sync.strict) == ("v1", False)
    assert controller.resync_period_seconds == 3600
    assert not controller.generate_selector
    assert controller.finalizer == "metacontroller.io/compositecontroller-hello"


@pytest.mark.parametrize(
    ("hook", "strict"),
    [
        ({"version": "v2", "webhook": {"url": "http://h"}}, True),
        ({"version": "v2", "webhook": {"url": "http://h", "responseUnMarshallMode": "loose"}}, False),
        ({"version": "v1", "webhook": {"url": "http://h", "responseUnMarshallMode": "strict"}}, True),
        ({"webhook": {"url": "http://h"}}, False),
    ],
)
def test_explicit_mode_overrides_the_versions_default(hook: JsonObject, strict: bool):
    sync = parse_composite(with_field("hooks.sync", hook)).hooks.sync

    assert sync is not None
    assert sync.strict is strict


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("hooks", None, "spec.hooks"),
        ("hooks.sync", "x", "spec.hooks.sync"),
        ("hooks.sync", {"version": "v3"}, "spec.hooks.sync.version"),
        ("hooks.sync", {"webhook": {}}, "spec.hooks.sync.webhook"),
        ("hooks.sync", {"webhook": {"service": {"name": "n", "namespace": "s"}}}, "spec.hooks.sync.webhook"),
        ("hooks.sync", {"webhook": {"path": "/sync", "service": {"name": "n"}}}, "spec.hooks.sync.webhook.service.namespace"),
        ("parentResource", None, "spec.parentResource"),
        ("parentResource.apiVersion", "", "spec.parentResource.apiVersion"),
        ("parentResource.labelSelector", {"matchExpressions": [{"key": "a", "operator": "?"}]}, None),
        ("childResources", [{"apiVersion": "v1"}], "spec.childResources[0].resource"),
        ("childResources", [{"apiVersion": "v1", "resource": "pods"}] * 2, "spec.childResources[1]"),
        ("childResources", [{"apiVersion": "v1", "resource": "pods", "updateStrategy": {"method": "Now"}}], None),
        ("resyncPeriodSeconds", "1h", "spec.resyncPeriodSeconds"),
        ("generateSelector", "yes", "spec.generateSelector"),
    ],
)
def test_invalid_field_is_named_by_its_path(path: str, value: JsonValue, field: str | None):
    with pytest.raises(InvalidSpec) as caught:
        parse_composite(with_field(path, value))

    assert caught.value.field.startswith(field or f"spec.{path}")


@pytest.mark.parametrize(("seconds", "expected"), [(None, None), (0, None), (-5, None), (0.2, 1.0), (7200, 7200.0)])
def test_resync_period_is_at_least_one_second(seconds: float | None, expected: float | None):
    assert parse_composite(with_field("resyncPeriodSeconds", seconds)).resync_period_seconds == expected


def test_one_resource_in_two_versions_is_listed_twice():
    """They are the same objects: a child that is desired in one version would be deleted in the other."""
    rules: JsonValue = [{"apiVersion": f"autoscaling/{version}", "resource": "horizontalpodautoscalers"} for version in ("v1", "v2")]

    with pytest.raises(InvalidSpec, match=r"childResources\[1\].*listed twice"):
        parse_composite(with_field("childResources", rules))
