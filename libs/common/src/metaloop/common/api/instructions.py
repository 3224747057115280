"""What people tell Metaloop by annotations of its own, on parents and on controllers."""

from metaloop.common.api import ON_DELETION_ANNOTATION, OURS, PAUSED_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured


def is_paused(obj: JsonObject) -> bool:
    """Whether somebody paused a parent, or a controller with all its parents."""
    return unstructured.annotations(obj).get(PAUSED_ANNOTATION) == "true"


def instructions(controller: JsonObject) -> dict[str, str]:
    """The annotations of a controller that concern its parents' syncs."""
    annotations = unstructured.annotations(controller)
    return {key: value for key, value in annotations.items() if key.startswith(OURS) and key != ON_DELETION_ANNOTATION}
