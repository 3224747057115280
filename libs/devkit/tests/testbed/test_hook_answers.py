"""The hooks that stories use: which children, attachments and outputs they want for a request."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.builtin import NODES, PODS
from metaloop.devkit.testbed.decorator import attaching, attachment, done_when_nothing_is_attached
from metaloop.devkit.testbed.mapping import copying, keeping_all, output
from metaloop.devkit.testbed.related import rule
from metaloop.devkit.testbed.story import answer_with, config_maps_of, expect_settled, three_config_maps


def composite(*observed: str, **spec: int | str) -> JsonObject:
    """A sync request for the parent `p` with these ConfigMaps."""
    children: JsonObject = {name: {} for name in observed}
    return {"parent": {"metadata": {"name": "p"}, "spec": {**spec}}, "children": {"ConfigMap.v1": children}}


def decorated(kind: str, **annotations: str) -> JsonObject:
    """A sync request for the object `x` of a kind."""
    return {"object": {"kind": kind, "metadata": {"name": "x", "annotations": {**annotations}}}}


def mapped(*, namespace: str = "", **data: str) -> JsonObject:
    """A map request for the input `in` of the parent `p`."""
    return {
        "parent": {"metadata": {"name": "p"}},
        "input": {"metadata": {"name": "in", **({"namespace": namespace} if namespace else {})}, "data": {**data}},
    }


def names(objects: list[JsonObject]) -> list[str]:
    return [unstructured.name(each) for each in objects]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [({}, ["p-0", "p-1", "p-2"]), ({"count": 0}, []), ({"count": 1}, ["p-0"])],
    ids=["three by default", "none", "as many as the spec says"],
)
def test_count_of_the_spec_decides_how_many_config_maps_are_wanted(spec: dict[str, int], wanted: list[str]) -> None:
    assert names(config_maps_of(composite(**spec))) == wanted


def test_wanted_config_maps_have_the_text_and_match_the_parents_selector() -> None:
    [made] = config_maps_of(composite(count=1, text="hello"))

    assert (made["data"], unstructured.labels(made)) == ({"text": "hello"}, {"parent": "p"})


@pytest.mark.parametrize("observed", [(), ("p-0",), ("p-0", "p-1", "p-2", "other")])
def test_status_counts_the_observed_config_maps_and_not_the_wanted(observed: tuple[str, ...]) -> None:
    answer = three_config_maps(composite(*observed))

    assert answer["status"] == {"children": len(observed)}
    assert len(unstructured.child_objects(answer, "children")) == 3


def test_answer_does_not_share_its_list_of_children() -> None:
    children: list[JsonObject] = []

    answer = answer_with(composite(), children)
    children.append({})

    assert answer["children"] == []


@pytest.mark.parametrize(
    ("status", "complaint"),
    [
        ({"children": 2, "observedGeneration": 4}, ""),
        ({"children": 1, "observedGeneration": 4}, "not yet"),
        ({"children": 2, "observedGeneration": 3}, "not yet"),
        ({"children": 2, "observedGeneration": 4, "more": 1}, "not yet"),
        ({}, "not yet"),
    ],
    ids=["both are right", "too few children", "of an earlier generation", "another field", "no status"],
)
def test_parent_is_settled_by_its_generation_and_its_children(status: JsonObject, complaint: str) -> None:
    parent: JsonObject = {"metadata": {"name": "p", "generation": 4}, "status": status}

    if not complaint:
        expect_settled(parent, children=2)
        return
    with pytest.raises(AssertionError, match=complaint):
        expect_settled(parent, children=2)


def test_attachment_is_named_by_kind_object_and_suffix_and_has_the_annotated_text() -> None:
    made = attachment(decorated("Pod", text="hello"), "log")

    assert (unstructured.name(made), made["data"], unstructured.namespace(made)) == ("pod-x-log", {"text": "hello"}, "")


def test_attachment_of_a_cluster_scoped_object_is_in_its_home() -> None:
    assert unstructured.namespace(attachment(decorated("Node", home="default"), "log")) == "default"


@pytest.mark.parametrize("suffixes", [(), ("a",), ("a", "b")])
def test_each_suffix_is_an_attachment_and_other_fields_are_added(suffixes: tuple[str, ...]) -> None:
    answer = attaching(*suffixes, labels={"seen": "yes"})(decorated("Pod"))

    assert isinstance(answer, dict)
    assert names(unstructured.child_objects(answer, "attachments")) == [f"pod-x-{suffix}" for suffix in suffixes]
    assert answer["labels"] == {"seen": "yes"}


@pytest.mark.parametrize(
    ("attached", "finalized"),
    [({}, True), ({"ConfigMap.v1": {}}, True), ({"ConfigMap.v1": {"a": {}}}, False), ({"ConfigMap.v1": {}, "Secret.v1": {"a": {}}}, False)],
)
def test_object_is_finalized_once_no_group_has_an_attachment(attached: JsonObject, *, finalized: bool) -> None:
    assert done_when_nothing_is_attached({"attachments": attached}) == {"attachments": [], "finalized": finalized}


@pytest.mark.parametrize("namespace", ["", "there"], ids=["a namespaced parent", "a cluster-scoped parent"])
def test_output_has_the_data_and_the_namespace_of_its_input(namespace: str) -> None:
    made = output(mapped(namespace=namespace, text="hello"), "copy")

    assert (unstructured.name(made), made["data"], unstructured.namespace(made)) == ("in-p-copy", {"text": "hello"}, namespace)


def test_two_parents_of_one_input_have_different_outputs() -> None:
    other: JsonObject = {**mapped(), "parent": {"metadata": {"name": "q"}}}

    assert unstructured.name(output(mapped(), "copy")) != unstructured.name(output(other, "copy"))


def test_map_hook_has_one_output_for_each_suffix_and_the_added_fields() -> None:
    answer = copying("a", "b", status={"copies": 2})(mapped())

    assert isinstance(answer, dict)
    assert names(unstructured.child_objects(answer, "outputs")) == ["in-p-a", "in-p-b"]
    assert answer["status"] == {"copies": 2}


def test_tombstone_hook_keeps_the_outputs_of_all_groups() -> None:
    one: JsonObject = {"metadata": {"name": "one"}}
    two: JsonObject = {"metadata": {"name": "two"}}

    assert keeping_all({"outputs": {"ConfigMap.v1": {"one": one}, "Secret.v1": {"two": two}, "Pod.v1": {}}}) == {"outputs": [one, two]}


def test_rule_names_the_resource_and_adds_its_fields() -> None:
    assert rule(PODS, namespace="default") == {"apiVersion": "v1", "resource": "pods", "namespace": "default"}
    assert rule(NODES) == {"apiVersion": "v1", "resource": "nodes"}
