"""Manifests become targets, or make the whole answer invalid."""

from base64 import b64encode

import pytest
from components import MARKS, Kinds, api_service, crd, manifest, placement, target, targets, widget

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.managed_types import ManagedType
from metaloop.reconciler.core.component.target import defined_resources, targets_of


def with_metadata(**fields: JsonValue) -> JsonObject:
    """A ConfigMap with these fields in its metadata."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **fields}}


REFUSED: dict[str, tuple[JsonObject, str]] = {
    "no apiVersion": ({"kind": "ConfigMap", "metadata": {"name": "a"}}, r"children\[0\]\.apiVersion: must be"),
    "apiVersion of another type": ({"apiVersion": 1, "kind": "A", "metadata": {"name": "a"}}, r"children\[0\]\.apiVersion: must be"),
    "no metadata": ({"apiVersion": "v1", "kind": "ConfigMap"}, r"children\[0\]\.metadata: must be an object, not null"),
    "metadata of another type": ({"apiVersion": "v1", "kind": "A", "metadata": []}, r"metadata: must be an object, not a list"),
    "generateName": (with_metadata(generateName="a-"), r"metadata\.generateName: is not allowed"),
    "no name": (with_metadata(name=""), r"metadata\.name: must be a non-empty string"),
    "labels of another type": (with_metadata(labels=["a"]), r"metadata\.labels: must be an object"),
    "a label that is no string": (with_metadata(labels={"a": 1}), r"metadata\.labels\[a\]: must be a string, not a number"),
    "an annotation that is no string": (with_metadata(annotations={"a": True}), r"metadata\.annotations\[a\]: must be a string"),
    "an unknown kind": (manifest("Widget"), r"children\[0\]\.kind: Widget is not served in v1"),
    "an unknown version": (manifest("Deployment", api_version="apps/v9"), r"Deployment is not served in apps/v9"),
    "an invalid annotation": (manifest(apply_order="x"), r"children\[0\]\.metadata\.annotations\[op\.example\.com/apply-order\]"),
    "stringData of another type": ({**manifest("Secret"), "stringData": {"a": 1}}, r"children\[0\]\.stringData\[a\]: must be a string"),
}


@pytest.mark.parametrize(("obj", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_manifest_is_refused_with_the_path_of_what_is_wrong(obj: JsonObject, problem: str):
    with pytest.raises(InvalidAnswer, match=problem):
        targets(obj)


def test_one_invalid_manifest_makes_the_whole_answer_invalid():
    with pytest.raises(InvalidAnswer, match=r"children\[2\]"):
        targets(manifest(name="a"), manifest(name="b"), manifest(name=""))


def test_object_is_refused_that_is_there_twice():
    with pytest.raises(InvalidAnswer, match=r"children\[1\]: ConfigMap default/a is there twice"):
        targets(manifest(), manifest(namespace="default"))


def test_object_of_the_same_name_in_another_namespace_is_another_one():
    assert [str(each.key) for each in targets(manifest(), manifest(namespace="n"))] == ["ConfigMap default/a", "ConfigMap n/a"]


def test_null_labels_and_annotations_count_as_absent():
    assert target(with_metadata(labels=None, annotations=None)).key.name == "a"


def test_namespaced_object_gets_the_namespace_of_the_component():
    assert unstructured.namespace(target().obj) == "default"


def test_namespaced_object_keeps_a_namespace_of_its_own():
    assert unstructured.namespace(target(manifest(namespace="n")).obj) == "n"


def test_cluster_scoped_object_loses_its_namespace():
    assert unstructured.metadata(target(manifest("Namespace", "x", namespace="n")).obj) == {"name": "x"}


def test_object_without_namespace_is_refused_for_a_component_without_one():
    with pytest.raises(InvalidAnswer, match=r"children\[0\]\.metadata\.namespace: is missing"):
        targets_of([manifest()], placement(namespace=""), kinds=Kinds())


def test_texts_of_a_secret_become_its_data():
    secret: JsonObject = {**manifest("Secret"), "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"b": "new"}}

    obj = target(secret).obj

    assert "stringData" not in obj
    assert obj["data"] == {"a": "eA==", "b": b64encode(b"new").decode()}


def test_other_kinds_may_have_a_field_called_string_data():
    assert target({**manifest(), "stringData": {"a": 1}}).obj["stringData"] == {"a": 1}


def test_marks_in_a_manifest_are_taken_away():
    assert target(MARKS.on(manifest(), digest="d")).obj == target().obj


# -- kinds that the component itself makes known -----------------------------------------------------------------------


def test_definition_among_the_objects_says_what_its_instances_are():
    [instance] = [each for each in targets(widget(), crd()) if each.key.kind == "Widget"]

    assert instance.info is not None
    assert instance.info.resource == "widgets"
    assert instance.info.has_status
    assert instance.key.namespace == "default"


def test_definition_of_a_cluster_scoped_kind_puts_its_instances_in_no_namespace():
    instance = targets(crd(scope="Cluster"), widget(namespace="n"))[1]

    assert instance.key.namespace == ""


def test_version_that_a_definition_does_not_serve_is_unknown():
    with pytest.raises(InvalidAnswer, match=r"Widget is not served in example\.com/v0"):
        targets(crd(), manifest("Widget", api_version="example.com/v0"))


def test_instance_of_an_api_service_among_the_objects_may_be_unknown_as_yet():
    [_, instance] = targets(api_service("m.io", "v1"), manifest("Metric", api_version="m.io/v1", namespace="n"))

    assert instance.info is None
    assert instance.key.namespace == "n"


def test_api_service_of_another_version_makes_nothing_known():
    with pytest.raises(InvalidAnswer, match=r"Metric is not served in m\.io/v2"):
        targets(api_service("m.io", "v1"), manifest("Metric", api_version="m.io/v2"))


def test_targets_name_the_types_that_they_make_known():
    assert [each.managed_types for each in targets(crd(), manifest())] == [(ManagedType("example.com", "*", "Widget"),), ()]


def test_only_definitions_define_resources():
    assert [*defined_resources(manifest())] == []
    assert [info.api_version for info in defined_resources(crd())] == ["example.com/v1"]


def test_equal_manifests_have_equal_digests_wherever_their_namespace_comes_from():
    assert target().digest == target(manifest(namespace="default")).digest
