"""The manifests that tests create."""

import pytest

from metaloop.common.api.composite import parse_composite
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.builtin import pod, service, stateful_set
from metaloop.devkit.testbed.kinds import KINDS, Kind, manifest, patched
from metaloop.devkit.testbed.manifests import child_rule, composite, config_map, crd, parent, parent_resource

THINGS = parent_resource("things")


@pytest.mark.parametrize(("namespaced", "scope"), [(True, "Namespaced"), (False, "Cluster")])
def test_crd_has_the_names_and_scope_of_its_resource(*, namespaced: bool, scope: str) -> None:
    resource = parent_resource("things", namespaced=namespaced)

    manifest = crd(resource)

    spec = unstructured.child_object(manifest, "spec")
    names = unstructured.child_object(spec, "names")
    assert unstructured.name(manifest) == "things.testbed.example.com"
    assert (spec["scope"], names["plural"], names["kind"]) == (scope, "things", "Thing")


@pytest.mark.parametrize("has_status", [True, False])
def test_crd_has_a_status_subresource_if_its_resource_has(*, has_status: bool) -> None:
    versions = unstructured.child_object(crd(parent_resource("things", has_status=has_status)), "spec")["versions"]

    assert isinstance(versions, list)
    [version] = versions
    assert ("subresources" in version) is has_status  # type: ignore[operator]


def test_composite_is_a_valid_controller() -> None:
    controller = parse_composite(composite("c", parent=THINGS, hook_url="http://hook/sync", children=[child_rule()]))

    assert (controller.name, [str(rule.resource) for rule in controller.children]) == ("c", ["v1/configmaps"])


def test_fields_of_the_spec_override_those_of_the_builder() -> None:
    made = composite("c", parent=THINGS, hook_url="http://hook/sync", children=[], resyncPeriodSeconds=5, childResources=[child_rule()])

    spec = unstructured.child_object(made, "spec")
    assert spec["resyncPeriodSeconds"] == 5
    assert spec["childResources"] == [child_rule()]


def test_rule_without_a_method_has_no_update_strategy() -> None:
    assert child_rule(method="") == {"apiVersion": "v1", "resource": "configmaps"}
    assert child_rule(method="Recreate")["updateStrategy"] == {"method": "Recreate"}


def test_parent_selects_children_with_its_name_as_label() -> None:
    made = parent(THINGS, "p", namespace="default", spec={"count": 3}, labels={"story": "s"})

    assert made["spec"] == {"selector": {"matchLabels": {"parent": "p"}}, "count": 3}
    assert (unstructured.namespace(made), unstructured.labels(made)) == ("default", {"story": "s"})


def test_config_map_has_only_the_given_fields() -> None:
    assert config_map("a") == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {}}


def test_built_in_objects_have_the_required_fields() -> None:
    assert unstructured.child_object(pod("p"), "spec")["containers"]
    assert unstructured.child_object(service("s"), "spec")["ports"] == [{"port": 80}]
    spec = unstructured.child_object(stateful_set("db", replicas=2), "spec")
    assert (spec["replicas"], spec["serviceName"]) == (2, "db")


PATCHES: dict[str, tuple[JsonObject, JsonObject, JsonObject]] = {
    # what it shows: (the object, the patch, the result)
    "a value is replaced": ({"a": 1}, {"a": 2}, {"a": 2}),
    "other values stay": ({"a": 1, "b": 1}, {"a": 2}, {"a": 2, "b": 1}),
    "null removes a value": ({"a": 1, "b": 1}, {"a": None}, {"b": 1}),
    "null for a missing value changes nothing": ({"b": 1}, {"a": None}, {"b": 1}),
    "objects are merged": ({"a": {"x": 1, "y": 1}}, {"a": {"x": 2}}, {"a": {"x": 2, "y": 1}}),
    "an object replaces a plain value": ({"a": 1}, {"a": {"x": 2}}, {"a": {"x": 2}}),
    "lists are replaced as a whole": ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
}


@pytest.mark.parametrize("case", PATCHES.values(), ids=PATCHES.keys())
def test_merge_patch_gives_the_same_result_as_the_api_server(case: tuple[JsonObject, JsonObject, JsonObject]) -> None:
    obj, patch, result = case

    assert patched(obj, patch) == result


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_drift_and_other_content_differ_from_the_content(kind: Kind) -> None:
    own = manifest(kind, "x", namespace="default")

    assert patched(own, kind.drift) != own
    assert patched(own, kind.other) != own
    assert ("namespace" in unstructured.metadata(own)) is kind.info.namespaced
