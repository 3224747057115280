"""The selector of the children of a CompositeController's parent."""

import pytest

from metaloop.common.api.composite import CompositeController, child_selector, parse_composite
from metaloop.common.errors import InvalidParent
from metaloop.common.json import JsonObject, JsonValue


def composite(*, generate_selector: bool) -> CompositeController:
    """A controller with or without `generateSelector`."""
    spec: JsonObject = {
        "parentResource": {"apiVersion": "ex.io/v1", "resource": "things"},
        "generateSelector": generate_selector,
        "hooks": {"sync": {"webhook": {"url": "http://127.0.0.1/sync"}}},
    }
    return parse_composite({"metadata": {"name": "things", "uid": "c"}, "spec": spec})


def parent(selector: JsonValue) -> JsonObject:
    """A parent with this `spec.selector`."""
    return {"metadata": {"name": "thing", "uid": "parent-uid"}, "spec": {"selector": selector}}


def test_parent_selects_by_its_own_selector():
    selector = child_selector(composite(generate_selector=False), parent({"matchLabels": {"app": "mine"}}))

    assert selector.matches({"app": "mine", "more": "labels"})
    assert not selector.matches({"app": "other"})


def test_generated_selector_overrides_the_parents_own():
    selector = child_selector(composite(generate_selector=True), parent({"matchLabels": {"app": "mine"}}))

    assert selector.matches({"controller-uid": "parent-uid"})
    assert not selector.matches({"app": "mine"})


@pytest.mark.parametrize(
    "selector",
    [None, {}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": []}, "app=mine", {"matchLabels": {"app": 1}}, {"matchExpressions": [{}]}],
)  # fmt: skip
def test_empty_or_malformed_selector_is_refused(selector: JsonValue):
    with pytest.raises(InvalidParent) as caught:
        child_selector(composite(generate_selector=False), parent(selector))

    assert caught.value.field.startswith("spec.selector")
