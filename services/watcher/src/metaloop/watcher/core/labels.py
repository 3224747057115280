"""The one label of a selector by which objects are indexed."""

from typing import TypeAlias

from metaloop.common.objects.selector import Selector

LabelPair: TypeAlias = tuple[str, str]
"""A label and its value."""


def equality_of(selector: Selector) -> LabelPair | None:
    """A label and the one value that `selector` requires of it; None where it requires none so plainly."""
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, requirement.values[0]
    return None
