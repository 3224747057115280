"""Label selectors: what they match, and the errors for invalid ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.selector import parse_selector, parse_selector_text

LABELS = {"app": "shop", "tier": "front", "size": "10", "example.com/team": "blue"}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, True),
        ({"matchLabels": {"app": "shop"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        ({"matchLabels": {"app": "shop", "tier": "back"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["shop", "x"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["shop"]}]}, False),
        ({"matchExpressions": [{"key": "gone", "operator": "NotIn", "values": ["shop"]}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, False),
    ],
)
def test_object_form_matches_as_kubernetes_does(raw: JsonObject, expected: bool):
    assert parse_selector(raw, "spec.selector").matches(LABELS) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=shop", True),
        ("app==shop,tier!=front", False),
        ("app in (shop, x),tier", True),
        ("app notin (shop)", False),
        ("!gone", True),
        ("gone", False),
        ("example.com/team = blue", True),
        ("size>9,size<11", True),
        ("size>10", False),
        ("app>1", False),
        ("gone<1", False),
    ],
)
def test_text_form_matches_as_kubectl_does(text: str, expected: bool):
    assert parse_selector_text(text).matches(LABELS) is expected


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("app=shop", "spec.selector"),
        ({"matchLabels": {"app": 1}}, "spec.selector.matchLabels"),
        ({"matchExpressions": {}}, "spec.selector.matchExpressions"),
        ({"matchExpressions": [{"operator": "Exists"}]}, "spec.selector.matchExpressions[0]"),
        ({"matchExpressions": [{"key": "a", "operator": "Like"}]}, "spec.selector.matchExpressions[0].operator"),
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, "spec.selector.matchExpressions[0].operator"),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "spec.selector.matchExpressions[0].values"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}, "spec.selector.matchExpressions[0].values"),
    ],
)
def test_invalid_field_is_named_by_its_path(raw: JsonObject, field: str):
    with pytest.raises(InvalidSpec) as caught:
        parse_selector(raw, "spec.selector")

    assert caught.value.field == field


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "(x)", ",", "a=b,", "a in (b", "a>b", "a=b@c", "-a", "a in (b c)", "/a"])
def test_text_that_is_not_a_selector_is_refused(text: str):
    with pytest.raises(InvalidSpec):
        parse_selector_text(text)


@given(st.dictionaries(st.text("abcxyz", min_size=1), st.text("abcxyz")), st.dictionaries(st.text("abcxyz", min_size=1), st.text("abcxyz")))
def test_equalities_match_exactly_the_labels_with_these_values(wanted: dict[str, str], labels: dict[str, str]):
    selector = parse_selector({"matchLabels": dict(wanted)}, "selector")

    assert selector.matches(labels) == (wanted.items() <= labels.items())


@pytest.mark.parametrize(
    "raw", [None, {}, {"matchLabels": None, "matchExpressions": None}, {"matchLabels": {}, "matchExpressions": []}], ids=repr
)
def test_selector_without_requirements_matches_everything(raw: JsonValue):
    selector = parse_selector(raw, "selector")

    assert selector.is_empty
    assert selector.matches({})
    assert selector.matches(LABELS)


def test_annotations_are_selected_under_their_own_key():
    selector = parse_selector({"matchAnnotations": {"app": "shop"}, "matchLabels": {"app": "other"}}, "s", labels_key="matchAnnotations")

    assert selector.matches(LABELS)


@pytest.mark.parametrize("text", ["app in (shop,x)", "app notin (shop)", "tier", "!gone", "size gt (9)", "app in (shop),tier"])
def test_selector_is_written_as_it_is_read(text: str):
    readable = text.replace("size gt (9)", "size>9")

    assert str(parse_selector_text(readable)) == text
