"""What people tell Metaloop by annotations of its own, on parents and on controllers."""

import re

from metaloop.common.api import MAX_CONCURRENT_ANNOTATION, ON_DELETION_ANNOTATION, OURS, PAUSED_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


def is_paused(obj: JsonObject) -> bool:
    """Whether somebody paused a parent, or a controller with all its parents."""
    return unstructured.annotations(obj).get(PAUSED_ANNOTATION) == "true"


def max_concurrent(controller: JsonObject) -> int | None:
    """How many parents of a controller may be in work at once; None for any number, also where the annotation holds no number above 0."""
    told = unstructured.annotations(controller).get(MAX_CONCURRENT_ANNOTATION, "")
    return int(told) if _NUMBER.fullmatch(told) and int(told) > 0 else None


def instructions(controller: JsonObject) -> dict[str, str]:
    """The annotations of a controller that concern its parents' syncs."""
    annotations = unstructured.annotations(controller)
    return {key: value for key, value in annotations.items() if key.startswith(OURS) and key != ON_DELETION_ANNOTATION}
