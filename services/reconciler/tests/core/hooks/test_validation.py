"""The validation of answers: what may be applied, and what would leak, loop or get lost."""

from dataclasses import replace

import pytest
from builders import CLUSTER_THINGS, CONFIG_MAPS, EMPTY_ANSWER, NAMESPACES, PARENT_UID, a_parent, config_map, group, observed

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.hooks.validation import desired_children
from metaloop.reconciler.core.kinds.composite import COMPOSITE
from metaloop.reconciler.core.model import Answer, DesiredChild, Observed

IN_NAMESPACE = observed(group(CONFIG_MAPS), group(NAMESPACES))
CLUSTER_WIDE = observed(group(CONFIG_MAPS), group(NAMESPACES), info=CLUSTER_THINGS)


def composite_children(given: Answer, seen: Observed) -> tuple[DesiredChild, ...]:
    """The children of a composite's parent that an answer asks for."""
    return desired_children(given, seen, variant=COMPOSITE)


def answer(*children: JsonObject) -> Answer:
    """An answer that asks for these children."""
    return replace(EMPTY_ANSWER, children=children)


def child(**metadata: object) -> JsonObject:
    """A ConfigMap with its name, its labels and this metadata. None removes an entry."""
    merged = {"name": "a", "labels": {"app": "mine"}, **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {key: value for key, value in merged.items() if value is not None}}  # type: ignore[dict-item]


NAMESPACE: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "labels": {"app": "mine"}}}


def test_child_without_namespace_gets_its_parents():
    [desired] = composite_children(answer(config_map()), IN_NAMESPACE)

    assert (desired.namespace, desired.name, desired.info) == ("default", "a", CONFIG_MAPS)
    assert unstructured.namespace(desired.obj) == "default"


def test_cluster_scoped_parent_may_have_children_anywhere():
    desired = composite_children(answer(child(namespace="one"), child(namespace="two"), NAMESPACE), CLUSTER_WIDE)

    assert [(each.namespace, each.name) for each in desired] == [("one", "a"), ("two", "a"), ("", "n")]


def test_same_name_in_another_kind_is_another_child():
    same_name: JsonObject = {**NAMESPACE, "metadata": {"name": "a", "labels": {"app": "mine"}}}

    assert len(composite_children(answer(child(namespace="one"), same_name), CLUSTER_WIDE)) == 2


def test_generated_label_is_added_unless_the_child_has_it():
    parent = observed(parent=a_parent(spec={}), generate_selector=True)
    own: JsonObject = {**config_map("b"), "metadata": {"name": "b", "labels": {"controller-uid": PARENT_UID, "x": "y"}}}

    first, second = composite_children(answer({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, own), parent)

    assert unstructured.labels(first.obj) == {"controller-uid": PARENT_UID}
    assert unstructured.labels(second.obj) == {"controller-uid": PARENT_UID, "x": "y"}


def test_answer_itself_is_not_changed():
    raw = config_map()
    before = repr(raw)

    composite_children(answer(raw), observed(parent=a_parent(spec={}), generate_selector=True))

    assert repr(raw) == before


REFUSED: dict[str, tuple[JsonObject, Observed, str]] = {
    # what it is: (the child, the parent, the field that is named)
    "a kind that is not declared": ({**child(), "kind": "Secret"}, IN_NAMESPACE, ".kind"),
    "a version that is not declared": ({**child(), "apiVersion": "v2"}, IN_NAMESPACE, ".kind"),
    "no apiVersion": ({"kind": "ConfigMap", "metadata": {"name": "a"}}, IN_NAMESPACE, ".apiVersion"),
    "no metadata": ({"apiVersion": "v1", "kind": "ConfigMap"}, IN_NAMESPACE, ".metadata"),
    "no name": (child(name=None), IN_NAMESPACE, ".metadata.name"),
    "an empty name": (child(name=""), IN_NAMESPACE, ".metadata.name"),
    "a name that is a number": (child(name=1), IN_NAMESPACE, ".metadata.name"),
    "a generated name": (child(name=None, generateName="a-"), IN_NAMESPACE, ".metadata.generateName"),
    "another namespace than its parent's": (child(namespace="elsewhere"), IN_NAMESPACE, ".metadata.namespace"),
    "a namespace that is a number": (child(namespace=1), IN_NAMESPACE, ".metadata.namespace"),
    "a cluster-scoped child of a namespaced parent": (NAMESPACE, IN_NAMESPACE, ""),
    "a namespaced child without namespace, of a cluster-scoped parent": (child(), CLUSTER_WIDE, ".metadata.namespace"),
    "a cluster-scoped child with a namespace": (
        {**NAMESPACE, "metadata": {"name": "n", "namespace": "x", "labels": {"app": "mine"}}},
        CLUSTER_WIDE,
        ".metadata.namespace",
    ),
    "labels that the selector does not match": (child(labels={"app": "other"}), IN_NAMESPACE, ".metadata.labels"),
    "no labels": (child(labels=None), IN_NAMESPACE, ".metadata.labels"),
    "labels that are no strings": (child(labels={"app": "mine", "n": 1}), IN_NAMESPACE, ".metadata.labels"),
    "labels that are a list": (child(labels=["app"]), IN_NAMESPACE, ".metadata.labels"),
    "annotations that are no strings": (child(annotations={"n": 1}), IN_NAMESPACE, ".metadata.annotations"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_one_wrong_child_refuses_the_whole_answer_and_is_named(case: tuple[JsonObject, Observed, str]):
    wrong, parent, field = case
    right = child(name="right", namespace="default")

    with pytest.raises(InvalidAnswer) as caught:
        composite_children(answer(right, wrong), parent)

    assert caught.value.field == f"children[1]{field}"


MESSAGES: dict[str, tuple[JsonObject, Observed, str]] = {
    # what it is: (the child, the world, what is said of it)
    "a kind that is not declared": (
        {**child(), "kind": "Secret"},
        IN_NAMESPACE,
        "children[0].kind: Secret a is of a kind (v1 Secret) that the controller does not declare",
    ),
    "a version that is not declared": (
        {**child(), "apiVersion": "v2"},
        IN_NAMESPACE,
        "children[0].kind: ConfigMap a is of a kind (v2 ConfigMap) that the controller does not declare",
    ),
    "another namespace": (
        child(namespace="elsewhere"),
        IN_NAMESPACE,
        "children[0].metadata.namespace: ConfigMap elsewhere/a must be in its parent's namespace, default",
    ),
    "a cluster-scoped child": (
        NAMESPACE,
        IN_NAMESPACE,
        "children[0]: Namespace n is cluster-scoped, and can't be the child of a namespaced parent",
    ),
    "labels that are no strings": (
        child(labels={"app": "mine", "n": 1}),
        IN_NAMESPACE,
        "children[0].metadata.labels: ConfigMap a must have a map of strings here",
    ),
    "no metadata": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": "bad"},
        IN_NAMESPACE,
        "children[0].metadata: ConfigMap  must have an object here",
    ),
}


@pytest.mark.parametrize("case", MESSAGES.values(), ids=MESSAGES.keys())
def test_message_names_the_child_and_what_is_wrong_with_it(case: tuple[JsonObject, Observed, str]):
    wrong, world, message = case

    with pytest.raises(InvalidAnswer) as caught:
        composite_children(answer(wrong), world)

    assert str(caught.value) == message


def test_the_same_child_twice_is_refused():
    with pytest.raises(InvalidAnswer, match=r"children\[2\].*ConfigMap default/a.*children\[0\]"):
        composite_children(answer(child(), child(name="b"), child(namespace="default")), IN_NAMESPACE)
