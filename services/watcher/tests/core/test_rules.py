"""The units of work that a change concerns, by the rules of composites and decorators."""

import pytest

from metaloop.common.api.decorator import DecoratorController, parse_decorator
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.rules.rule import Touched

from ..objects import CONFIGMAPS, HELLOS, caches_of, change, instance, owned_by, record, served

PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False)
SELECTS_WEB: JsonObject = {"selector": {"matchLabels": {"app": "web"}}}


def concerned(instance: Instance, happened: Change, *parents: Record, resource: ResourceInfo = HELLOS) -> list[ObjectKey]:
    """The parents that a change concerns, where these are cached."""
    caches = caches_of({resource: parents})
    rules = [rule for rule in instance.rules if happened.watch in rule.watches]
    concerns = [each for rule in rules for each in rule.concerned(happened, caches) if isinstance(each, Touched)]
    return sorted((each.key.namespace, each.key.name) for each in concerns)


def is_concerned(instance: Instance, happened: Change) -> bool:
    """Whether a parent's own change concerns it."""
    return concerned(instance, happened) == [happened.key]


def appear(instance: Instance, *parents: Record, resource: ResourceInfo = HELLOS) -> None:
    """Have parents appear, so that orphans find them."""
    for parent in parents:
        concerned(instance, change(resource, None, parent))


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
        appear(adopting, record(name, spec=spec))

    orphan = change(CONFIGMAPS, None, record("c", labels={"app": "web"}))

    assert concerned(adopting, orphan) == [("n", "web")]


def test_a_parent_that_is_gone_adopts_nobody():
    adopting = instance()
    appear(adopting, record("web", spec=SELECTS_WEB))
    concerned(adopting, change(HELLOS, record("web", spec=SELECTS_WEB), None))

    assert not concerned(adopting, change(CONFIGMAPS, None, record("c", labels={"app": "web"})))


@pytest.mark.parametrize("spec", [{}, {"selector": {}}, {"selector": "app=web"}, {"selector": {"matchLabels": {"a": 1}}}])
def test_a_parent_without_a_usable_selector_adopts_nobody(spec: JsonObject):
    adopting = instance()
    appear(adopting, record("p", spec=spec))

    assert not concerned(adopting, change(CONFIGMAPS, None, record("c", labels={"app": "web"})))


def test_a_decorator_has_parents_of_each_of_its_resources():
    assert [parents.watch.resource for parents in decorating().parents] == [PODS, NODES]
    assert [watch.resource for watch in decorating().watches] == [PODS, NODES, CONFIGMAPS]


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
    appear(decorates, record("p", spec=SELECTS_WEB), resource=PODS)

    assert not concerned(decorates, change(CONFIGMAPS, None, record("c", labels={"app": "web"})), record("p"), resource=PODS)
