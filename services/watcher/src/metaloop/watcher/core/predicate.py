"""Whether a change is worth a job: same version, status alone."""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.watcher.core.record import Record


def is_status_only(old: Record, new: Record) -> bool:
    """Whether nothing that `ignoreStatusChanges` cares for differs: not generation, labels, annotations, deletion.

    A kind without generation can't tell its data's changes by it, so there everything beside metadata and status counts.
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
