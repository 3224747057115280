"""Schemas that are compiled from a kind's OpenAPI."""

from known_schemas import GADGET, GADGETS, WIDGET, document

from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.openapi import schema_of

SPEC = GADGET.of("spec")


def test_lists_are_maps_sets_atomic_or_unknown():
    assert [SPEC.of(name).list_type for name in ("ports", "names", "rules", "anyhow")] == ["map", "set", "atomic", "unknown"]


def test_list_map_has_its_keys_and_their_defaults():
    assert SPEC.of("ports").keys == ("port", "protocol")
    assert SPEC.of("ports").key_defaults == {"protocol": "TCP"}


def test_quantities_are_known_wherever_they_are():
    assert SPEC.of("limits").of("cpu").scalar == "quantity"
    assert SPEC.of("rules").items.of("limit").scalar == "quantity"


def test_base64_is_known():
    assert SPEC.of("token").scalar == "bytes"


def test_atomic_objects_are_known():
    assert SPEC.of("selector").is_atomic
    assert not SPEC.is_atomic


def test_go_types_drop_empty_lists_and_maps_and_some_zeros():
    assert [SPEC.of(name).drops_empty for name in ("ports", "limits", "hostNetwork", "replicas", "selector")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert GADGET.of("metadata").of("labels").drops_empty


def test_zeros_that_go_types_fill_are_known_also_where_a_component_is_referred_to():
    assert [SPEC.of(name).fills_empty for name in ("nodePort", "targetPort", "replicas")] == [True, True, False]
    assert not SPEC.of("limits").of("nodePort").fills_empty


def test_values_of_a_map_are_never_dropped():
    assert not SPEC.of("limits").of("hostNetwork").drops_empty


def test_component_that_contains_itself_is_made_once():
    assert SPEC.of("inner") is SPEC
    assert SPEC.of("inner").of("inner").of("ports").keys == ("port", "protocol")


def test_custom_kind_is_taken_literally():
    assert WIDGET.of("spec").of("limits").of("cpu").scalar == "literal"
    assert not WIDGET.of("spec").of("list").drops_empty
    assert WIDGET.of("spec").of("maybe").is_nullable


def test_field_that_the_schema_does_not_name_is_taken_literally():
    assert SPEC.of("unheard").list_type == "unknown"
    assert not SPEC.of("unheard").of("of").drops_empty


def test_kind_that_the_document_does_not_know_has_no_schema():
    other = ResourceInfo(api_version="apps/v2", resource="gadgets", kind="Gadget", namespaced=True)

    assert schema_of(document(), other) is None
    assert schema_of({}, GADGETS) is None
