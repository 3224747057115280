"""Metaloop's own annotations on parents and controllers, as their readers need them."""

import re

from metaloop.common.api import ANNOTATION_PREFIX, MAX_CONCURRENT_ANNOTATION, ON_DELETION_ANNOTATION, PAUSED_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured

_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


def is_paused(obj: JsonObject) -> bool:
    """Whether a parent is paused, or a controller with all its parents."""
    return unstructured.annotations(obj).get(PAUSED_ANNOTATION) == "true"


def max_concurrent(controller: JsonObject) -> int | None:
    """How many parents of a controller may be synced at once.

    None for any number. An annotation that is not a positive number counts as absent.
    """
    value = unstructured.annotations(controller).get(MAX_CONCURRENT_ANNOTATION, "")
    return int(value) if _NUMBER.fullmatch(value) and int(value) > 0 else None


def instructions(controller: JsonObject) -> dict[str, str]:
    """The annotations of a controller that concern its parents' syncs."""
    annotations = unstructured.annotations(controller)
    return {key: value for key, value in annotations.items() if key.startswith(ANNOTATION_PREFIX) and key != ON_DELETION_ANNOTATION}
