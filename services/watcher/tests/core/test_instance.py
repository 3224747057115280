"""Whom a change concerns."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.watcher.core.instance import child_selector, concerned_by_child, concerned_by_parent

from ..objects import CONFIGMAPS, HELLOS, change, controller, instance, obj, owned_by, record

SELECTS_WEB: JsonObject = {"selector": {"matchLabels": {"app": "web"}}}


def test_a_selected_parent_concerns_itself():
    assert concerned_by_parent(instance(), change(HELLOS, None, record("p")))


def test_a_parent_that_is_not_selected_concerns_nobody():
    assert not concerned_by_parent(instance(match={"a": "b"}), change(HELLOS, None, record("p")))


def test_a_deselected_parent_with_our_finalizer_is_still_served():
    ours = record("p", finalizers=["metacontroller.io/compositecontroller-hello"])

    assert concerned_by_parent(instance(match={"a": "b"}), change(HELLOS, None, ours))


def test_a_deleted_parent_is_no_work():
    assert not concerned_by_parent(instance(), change(HELLOS, record("p"), None))


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

    assert concerned_by_parent(instance(ignore_status_changes=True), happened) is expected
    assert concerned_by_parent(instance(), happened)


def test_a_child_concerns_its_controller_whatever_that_ones_version():
    parents = {("n", "p"): record("p")}
    child = record("c", ownerReferences=owned_by("p", api_version="ex.io/v1beta1"))

    assert list(concerned_by_child(instance(), change(CONFIGMAPS, None, child), parents)) == [("n", "p")]


@pytest.mark.parametrize(
    "reference",
    [owned_by("p", uid="another"), owned_by("q"), owned_by("p", kind="Other"), owned_by("p", api_version="other.io/v1")],
)
def test_a_reference_that_means_another_object_concerns_nobody(reference: list[JsonObject]):
    parents = {("n", "p"): record("p")}

    assert not list(concerned_by_child(instance(), change(CONFIGMAPS, None, record("c", ownerReferences=reference)), parents))


def test_a_child_that_lost_its_controller_concerns_the_former_one():
    parents = {("n", "p"): record("p")}
    happened = change(CONFIGMAPS, record("c", ownerReferences=owned_by("p")), record("c", version=2))

    assert list(concerned_by_child(instance(), happened, parents)) == [("n", "p")]


def test_a_child_that_changed_hands_concerns_both():
    parents = {("n", "p"): record("p"), ("n", "q"): record("q")}
    happened = change(CONFIGMAPS, record("c", ownerReferences=owned_by("p")), record("c", version=2, ownerReferences=owned_by("q")))

    assert sorted(concerned_by_child(instance(), happened, parents)) == [("n", "p"), ("n", "q")]


def test_a_deleted_child_concerns_its_controller():
    parents = {("n", "p"): record("p")}

    assert list(concerned_by_child(instance(), change(CONFIGMAPS, record("c", ownerReferences=owned_by("p")), None), parents)) == [
        ("n", "p")
    ]


def test_an_orphan_concerns_the_parents_that_would_adopt_it():
    served = instance()
    for name, spec in {"web": SELECTS_WEB, "other": {"selector": {"matchLabels": {"app": "db"}}}, "none": {}}.items():
        served.learn_parent(("n", name), record(name, spec=spec))

    orphan = change(CONFIGMAPS, None, record("c", labels={"app": "web"}))

    assert list(concerned_by_child(served, orphan, {})) == [("n", "web")]


def test_a_parent_that_is_gone_adopts_nobody():
    served = instance()
    served.learn_parent(("n", "web"), record("web", spec=SELECTS_WEB))
    served.learn_parent(("n", "web"), None)

    assert not list(concerned_by_child(served, change(CONFIGMAPS, None, record("c", labels={"app": "web"})), {}))


@pytest.mark.parametrize("spec", [{}, {"selector": {}}, {"selector": "app=web"}, {"selector": {"matchLabels": {"a": 1}}}])
def test_a_parent_without_a_usable_selector_adopts_nobody(spec: JsonObject):
    assert child_selector(controller(), obj("p", spec=spec)) is None


def test_a_generated_selector_is_the_parents_uid():
    selector = child_selector(controller(generate_selector=True), obj("p", uid="u1"))

    assert selector is not None
    assert selector.matches({"controller-uid": "u1"})
    assert not selector.matches({"controller-uid": "u2"})
