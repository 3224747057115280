"""Whom a change concerns."""

import pytest

from metaloop.common.api.decorator import DecoratorController, parse_decorator
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.instance import Instance, concerned_by_child, concerned_by_parent
from metaloop.watcher.core.record import ObjectKey, Record

from ..objects import CONFIGMAPS, HELLOS, change, instance, owned_by, record, served

PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
SELECTS_WEB: JsonObject = {"selector": {"matchLabels": {"app": "web"}}}


def is_concerned(instance: Instance, happened: Change) -> bool:
    """Whether a parent's own change concerns it."""
    target = instance.target(happened.resource.id)
    return target is not None and concerned_by_parent(target, happened)


def concerned(instance: Instance, happened: Change, *parents: Record, resource: ResourceInfo = HELLOS) -> list[ObjectKey]:
    """The parents that a child's change concerns, where these are cached."""
    cached = {(resource.id, parent.key): parent for parent in parents}

    def lookup(resource: ResourceId, key: ObjectKey) -> Record | None:
        return cached.get((resource, key))

    return sorted(parent.key for parent in concerned_by_child(instance, happened, lookup))


def decorator(**rule: JsonValue) -> DecoratorController:
    """A decorator of Pods and Nodes, with ConfigMaps as attachments."""
    return parse_decorator(
        {
            "metadata": {"name": "tags", "uid": "dc"},
            "spec": {
                "resources": [{"apiVersion": "v1", "resource": "pods", **rule}, {"apiVersion": "v1", "resource": "nodes"}],
                "attachments": [{"apiVersion": "v1", "resource": "configmaps"}],
                "hooks": {"sync": {"webhook": {"url": "http://hook"}}},
            },
        }
    )


def decorating(**rule: JsonValue) -> Instance:
    return served(decorator(**rule), PODS, NODES, CONFIGMAPS)


def test_a_selected_parent_concerns_itself():
    assert is_concerned(instance(), change(HELLOS, None, record("p")))


def test_a_parent_that_is_not_selected_concerns_nobody():
    assert not is_concerned(instance(match={"a": "b"}), change(HELLOS, None, record("p")))


def test_a_deselected_parent_with_our_finalizer_is_still_served():
    ours = record("p", finalizers=["metacontroller.io/compositecontroller-hello"])

    assert is_concerned(instance(match={"a": "b"}), change(HELLOS, None, ours))


def test_a_deleted_parent_is_no_work():
    assert not is_concerned(instance(), change(HELLOS, record("p"), None))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"generation": 1}, {"generation": 2}, True),
        ({"generation": 1}, {"generation": 1}, False),
        ({"labels": {"a": "b"}}, {"labels": {"a": "c"}}, True),
        ({"annotations": {"a": "b"}}, {"annotations": {"a": "c"}}, True),
        ({"generation": 1}, {"generation": 1, "deletionTimestamp": "now"}, True),
        ({"spec": {"a": 1}}, {"spec": {"a": 2}}, True),
        ({"spec": {"a": 1}}, {"spec": {"a": 1}}, False),
    ],
)
def test_ignored_status_changes_hide_nothing_else(old: dict[str, object], new: dict[str, object], expected: bool):
    happened = change(HELLOS, record("p", version=1, **old), record("p", version=2, **new))

    assert is_concerned(instance(ignore_status_changes=True), happened) is expected
    assert is_concerned(instance(), happened)


def test_a_child_concerns_its_controller_whatever_that_ones_version():
    child = record("c", ownerReferences=owned_by("p", api_version="ex.io/v1beta1"))

    assert concerned(instance(), change(CONFIGMAPS, None, child), record("p")) == [("n", "p")]


@pytest.mark.parametrize(
    "reference",
    [owned_by("p", uid="another"), owned_by("q"), owned_by("p", kind="Other"), owned_by("p", api_version="other.io/v1")],
)
def test_a_reference_that_means_another_object_concerns_nobody(reference: list[JsonObject]):

    assert not concerned(instance(), change(CONFIGMAPS, None, record("c", ownerReferences=reference)), record("p"))


def test_a_child_that_lost_its_controller_concerns_the_former_one():
    happened = change(CONFIGMAPS, record("c", ownerReferences=owned_by("p")), record("c", version=2))

    assert concerned(instance(), happened, record("p")) == [("n", "p")]


def test_a_child_that_changed_hands_concerns_both():
    happened = change(CONFIGMAPS, record("c", ownerReferences=owned_by("p")), record("c", version=2, ownerReferences=owned_by("q")))

    assert concerned(instance(), happened, record("p"), record("q")) == [("n", "p"), ("n", "q")]


def test_a_deleted_child_concerns_its_controller():

    assert concerned(instance(), change(CONFIGMAPS, record("c", ownerReferences=owned_by("p")), None), record("p")) == [("n", "p")]


def test_an_orphan_concerns_the_parents_that_would_adopt_it():
    adopting = instance()
    for name, spec in {"web": SELECTS_WEB, "other": {"selector": {"matchLabels": {"app": "db"}}}, "none": {}}.items():
        adopting.learn_parent(adopting.targets[0], ("n", name), record(name, spec=spec))

    orphan = change(CONFIGMAPS, None, record("c", labels={"app": "web"}))

    assert concerned(adopting, orphan) == [("n", "web")]


def test_a_parent_that_is_gone_adopts_nobody():
    adopting = instance()
    (target,) = adopting.targets
    adopting.learn_parent(target, ("n", "web"), record("web", spec=SELECTS_WEB))
    adopting.learn_parent(target, ("n", "web"), None)

    assert not concerned(adopting, change(CONFIGMAPS, None, record("c", labels={"app": "web"})))


@pytest.mark.parametrize("spec", [{}, {"selector": {}}, {"selector": "app=web"}, {"selector": {"matchLabels": {"a": 1}}}])
def test_a_parent_without_a_usable_selector_adopts_nobody(spec: JsonObject):
    adopting = instance()
    adopting.learn_parent(adopting.targets[0], ("n", "p"), record("p", spec=spec))

    assert not concerned(adopting, change(CONFIGMAPS, None, record("c", labels={"app": "web"})))


def test_a_decorator_has_a_target_for_each_of_its_resources():
    assert [target.resource for target in decorating().targets] == [PODS, NODES]
    assert decorating().resources == (PODS, NODES, CONFIGMAPS)


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [({"app": "a"}, {"tag": "yes"}, True), ({"app": "a"}, {}, False), ({}, {"tag": "yes"}, False), ({"app": "a"}, {"tag": "no"}, False)],
)
def test_a_decorated_object_is_selected_by_labels_and_annotations(labels: dict[str, str], annotations: dict[str, str], expected: bool):
    selects = decorating(labelSelector={"matchLabels": {"app": "a"}}, annotationSelector={"matchAnnotations": {"tag": "yes"}})

    assert is_concerned(selects, change(PODS, None, record("p", labels=labels, annotations=annotations))) is expected


def test_a_formerly_decorated_object_is_served_until_our_finalizer_is_gone():
    selects = decorating(annotationSelector={"matchAnnotations": {"tag": "yes"}})
    ours = record("p", finalizers=["metacontroller.io/decoratorcontroller-tags"])

    assert is_concerned(selects, change(PODS, None, ours))
    assert not is_concerned(selects, change(PODS, ours, record("p", version=2)))


def test_a_newly_selected_object_is_news_even_if_status_changes_are_ignored():
    selects = decorating(labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}, ignoreStatusChanges=True)

    assert is_concerned(selects, change(PODS, record("p", generation=1), record("p", version=2, generation=1, labels={"app": ""})))


def test_an_attachment_concerns_the_object_that_owns_it_of_whatever_target():
    of_pod = change(CONFIGMAPS, None, record("c", ownerReferences=owned_by("p", kind="Pod", api_version="v1")))
    of_node = change(CONFIGMAPS, None, record("c", ownerReferences=owned_by("p", uid="node", kind="Node", api_version="v1")))
    node = record("p", namespace="", uid="node")

    assert concerned(decorating(), of_pod, record("p"), resource=PODS) == [("n", "p")]
    assert concerned(decorating(), of_node, node, resource=NODES) == [("", "p")]


def test_an_orphan_is_no_attachment():
    decorates = decorating()
    decorates.learn_parent(decorates.targets[0], ("n", "p"), record("p", spec=SELECTS_WEB))

    assert not concerned(decorates, change(CONFIGMAPS, None, record("c", labels={"app": "web"})), record("p"), resource=PODS)
