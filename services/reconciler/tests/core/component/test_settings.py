"""The settings of objects: annotations, the component, the controller, in this order."""

import pytest
from components import PREFIX, api_service, crd, manifest

from metaloop.common.api.policies import ADOPTION, DELETE, RECONCILE, UPDATE, Policies, canonical, kebab
from metaloop.common.errors import InvalidAnswer, InvalidParent
from metaloop.common.json import JsonObject
from metaloop.reconciler.core.component.hints import Hints
from metaloop.reconciler.core.component.settings import (
    GREATEST_ORDER,
    LEAST_ORDER,
    ObjectSettings,
    component_policies,
    object_settings,
)

ANOTHER = Policies(adoption="Never", reconcile="Once", update="SsaMerge", delete="Orphan", reapply_seconds=60)


def settings(obj: JsonObject, policies: Policies | None = None) -> ObjectSettings:
    """The settings of an object."""
    return object_settings(obj, prefix=PREFIX, policies=policies or Policies(), field="children[0]")


def test_object_without_annotations_has_the_defaults():
    assert settings(manifest()) == ObjectSettings()


def test_object_without_annotations_has_the_policies_of_its_component():
    assert settings(manifest(), ANOTHER) == ObjectSettings(
        adoption="Never", reconcile="Once", update="SsaMerge", delete="Orphan", reapply_seconds=60
    )


EVERY_VALUE = [
    (name, attribute, text, value)
    for name, attribute, values in (
        ("adoption_policy", "adoption", ADOPTION),
        ("reconcile_policy", "reconcile", RECONCILE),
        ("update_policy", "update", UPDATE),
        ("delete_policy", "delete", DELETE),
    )
    for value in values
    for text in (value, kebab(value), value.lower() if value == value.capitalize() else f" {value} ")
]


@pytest.mark.parametrize(("name", "attribute", "text", "value"), EVERY_VALUE)
def test_annotation_prevails_over_the_component(name: str, attribute: str, text: str, value: str):
    assert getattr(settings(manifest(**{name: text}), ANOTHER), attribute) == value


@pytest.mark.parametrize(("name", "attribute"), [("update_policy", "update"), ("delete_policy", "delete")])
@pytest.mark.parametrize("text", ["default", "Default", ""])
def test_default_means_that_the_object_says_nothing(name: str, attribute: str, text: str):
    assert getattr(settings(manifest(**{name: text}), ANOTHER), attribute) == getattr(ANOTHER, attribute)


@pytest.mark.parametrize("name", ["adoption_policy", "reconcile_policy", "update_policy", "delete_policy"])
@pytest.mark.parametrize("text", ["maybe", "if unowned", "replaced", "1", "ssa_merge"])
def test_unknown_policy_is_refused_with_the_annotation(name: str, text: str):
    with pytest.raises(InvalidAnswer, match=r"^children\[0\]\.metadata\.annotations\[op\.example\.com/.*must be one of") as refused:
        settings(manifest(**{name: text}))

    assert name.replace("_", "-") in str(refused.value)
    assert "ConfigMap a" in str(refused.value)


@pytest.mark.parametrize("name", ["apply_order", "purge_order", "delete_order"])
@pytest.mark.parametrize("order", [LEAST_ORDER, -1, 0, 1, GREATEST_ORDER])
def test_orders_are_read(name: str, order: int):
    assert getattr(settings(manifest(**{name: str(order)})), name) == order


@pytest.mark.parametrize("name", ["apply_order", "purge_order", "delete_order"])
@pytest.mark.parametrize("text", ["x", "1.5", "32768", "-32769", "1e3"])
def test_order_out_of_range_is_refused(name: str, text: str):
    with pytest.raises(InvalidAnswer, match="must be a whole number from -32768 to 32767"):
        settings(manifest(**{name: text}))


@pytest.mark.parametrize("obj", [manifest("Namespace", purge_order="1"), crd(purge_order="1"), api_service(purge_order="1")])
def test_what_holds_other_objects_is_never_purged(obj: JsonObject):
    with pytest.raises(InvalidAnswer, match=r"purge-order.*is not allowed"):
        settings(obj)


@pytest.mark.parametrize(("text", "seconds"), [("10s", 10), ("1h30m", 5400), ("500ms", 0.5)])
def test_reapply_interval_is_a_duration(text: str, seconds: float):
    assert settings(manifest(reapply_interval=text)).reapply_seconds == seconds


@pytest.mark.parametrize("text", ["10", "0s", "-1m", "soon"])
def test_reapply_interval_that_is_no_duration_is_refused(text: str):
    with pytest.raises(InvalidAnswer, match="must be a duration"):
        settings(manifest(reapply_interval=text))


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("has-observed-generation", Hints(has_observed_generation=True)),
        ("has-ready-condition", Hints(has_ready_condition=True)),
        ("conditions=A", Hints(conditions=("A",))),
        ("conditions=A;B", Hints(conditions=("A", "B"))),
        (" Has-Ready-Condition , conditions= A ; B ,", Hints(has_ready_condition=True, conditions=("A", "B"))),
    ],
)
def test_status_hints_are_a_list(text: str, hints: Hints):
    assert settings(manifest(status_hint=text)).hints == hints


@pytest.mark.parametrize("text", ["has-status", "conditions", "conditions=", "conditions=;", "has-ready-condition;conditions=A"])
def test_unknown_hint_is_refused(text: str):
    with pytest.raises(InvalidAnswer, match=r"status-hint.*hint"):
        settings(manifest(status_hint=text))


def test_annotations_of_others_are_not_read():
    obj = manifest()
    obj["metadata"] = {"name": "a", "annotations": {"other.example.com/apply-order": "x", "apply-order": "y"}}

    assert settings(obj) == ObjectSettings()


# -- the component and its controller ----------------------------------------------------------------------------------


def test_component_that_states_nothing_has_the_policies_of_its_controller():
    assert component_policies(ANOTHER, {}, field="spec.policies") == ANOTHER


def test_policies_of_a_component_prevail_over_those_of_its_controller():
    stated: JsonObject = {"adoption": "always", "delete": "OrphanOnDelete", "update": "", "reconcile": None}

    assert component_policies(ANOTHER, stated, field="spec.policies") == Policies(
        adoption="Always", reconcile="Once", update="SsaMerge", delete="OrphanOnDelete", reapply_seconds=60
    )


def test_annotation_prevails_over_component_and_controller():
    of_component = component_policies(Policies(delete="Orphan"), {"delete": "OrphanOnApply"}, field="spec.policies")

    assert settings(manifest(), of_component).delete == "OrphanOnApply"
    assert settings(manifest(delete_policy="delete"), of_component).delete == "Delete"


@pytest.mark.parametrize("value", ["maybe", 1, True, {}])
def test_policy_of_a_component_that_is_none_is_the_components_fault(value: str):
    with pytest.raises(InvalidParent, match=r"^spec\.policies\.missingNamespaces: must be one of Create, DoNotCreate"):
        component_policies(Policies(), {"missingNamespaces": value}, field="spec.policies")


@pytest.mark.parametrize(("text", "words"), [("IfUnowned", "if-unowned"), ("once", "once"), ("SsaMerge", "ssa-merge")])
def test_values_are_compared_word_by_word(text: str, words: str):
    assert kebab(text) == words


def test_text_that_means_no_choice_has_no_canonical_form():
    assert canonical("ifunowned", ADOPTION) is None
