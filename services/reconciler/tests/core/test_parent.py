"""Which children a parent selects."""

import pytest
from worlds import PARENT_UID, a_parent

from metaloop.common.errors import InvalidParent
from metaloop.common.json import JsonValue
from metaloop.reconciler.core.parent import selector_of


def test_parent_selects_by_its_own_selector():
    selector = selector_of(a_parent(), is_generated=False)

    assert selector.matches({"app": "mine", "more": "labels"})
    assert not selector.matches({"app": "other"})


def test_generated_selector_overrides_the_parents_own():
    selector = selector_of(a_parent(), is_generated=True)

    assert selector.matches({"controller-uid": PARENT_UID})
    assert not selector.matches({"app": "mine"})


@pytest.mark.parametrize(
    "selector",
    [None, {}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": []}, "app=mine", {"matchLabels": {"app": 1}}, {"matchExpressions": [{}]}],
)  # fmt: skip
def test_selector_that_selects_everything_or_nothing_at_all_is_the_parents_fault(selector: JsonValue):
    with pytest.raises(InvalidParent) as caught:
        selector_of(a_parent(spec={"selector": selector}), is_generated=False)

    assert caught.value.field.startswith("spec.selector")
