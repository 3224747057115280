"""What a parent itself asks for: the selector of its children, and whether they are managed at all."""

from typing import Final

from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.selector import Requirement, Selector, parse_selector

GENERATED_LABEL: Final = "controller-uid"
"""The label that `generateSelector` puts on every child, and selects them by."""


def selector_of(parent: JsonObject, *, is_generated: bool) -> Selector:
    """Which labels a parent's children have: its own `spec.selector`, or the generated label. Raises InvalidParent where that selects nothing."""
    if is_generated:
        return Selector((Requirement(GENERATED_LABEL, "In", (unstructured.uid(parent),)),))
    raw = unstructured.child_object(parent, "spec").get("selector")
    try:
        selector = parse_selector(raw, "spec.selector")
    except InvalidSpec as error:
        raise InvalidParent(error.field, str(error).removeprefix(f"{error.field}: ")) from error
    if selector.is_empty:
        raise InvalidParent(
            "spec.selector", "is missing or empty: it would select every object (or set generateSelector on the controller)"
        )
    return selector
