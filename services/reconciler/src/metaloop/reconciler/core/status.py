"""The parent's next status, its `observedGeneration`, and whether it is worth a write.

The hook's status replaces the stored one whole; a null status is an empty one. `observedGeneration` is ours to say, whatever the hook says: it tells for which
generation of the parent the rest was true.
"""

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.equality import same


def next_status(parent: JsonObject, answered: JsonObject | None) -> JsonObject:
    """The status that `parent` ought to have, given what the hook `answered` when it was shown it."""
    return {**(answered or {}), "observedGeneration": unstructured.generation(parent)}


def with_status(parent: JsonObject, status: JsonObject) -> JsonObject | None:
    """`parent` with `status`, the UID and resourceVersion that it was seen with; None where it has that status, and writing it would change nothing."""
    return None if same(parent.get("status"), status) else {**parent, "status": status}
