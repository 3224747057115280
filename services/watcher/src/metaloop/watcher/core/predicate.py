"""Whether a change of a parent is worth a job."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.watcher.core.record import Record


def is_status_only(old: Record, new: Record) -> bool:
    """Whether nothing but the status differs: generation, labels, annotations and deletion are the same.

    For kinds without a generation, everything beside metadata and status is compared.
    """
    if new.is_deleting or old.uid != new.uid or old.labels != new.labels:
        return False
    before, after = old.parse(), new.parse()
    if unstructured.annotations(before) != unstructured.annotations(after):
        return False
    generation = unstructured.generation(after)
    return unstructured.generation(before) == generation if generation else _content(before) == _content(after)


def _content(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in {"metadata", "status"}}
