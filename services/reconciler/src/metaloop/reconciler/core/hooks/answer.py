"""Reads the answer of a sync or finalize hook from the body of its response.

Garbage must never look like an answer, because an answer without children deletes the existing children.

Rules (`body` has those for the bodies of all hooks)
    1. An answer with a field of the wrong type is invalid. A null field counts as absent: Go hooks write
       `"children": null`.
    2. Each child is an object with a kind. The rest of it is free-form.
    3. An answer without children that has an unknown key is invalid, unless the parent is finalized: the key is most
       likely a misspelt `children`, and nobody means to delete all children by that.
    4. A null label or annotation in a decorator's answer removes that label or annotation.
"""

from typing import Final

from metaloop.common.api.hook import HookKeys
from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject, JsonValue, is_object, type_name
from metaloop.reconciler.core.hooks.body import body_of, check_misspelt
from metaloop.reconciler.core.model import Answer, MetadataChanges

LEAST_RESYNC_SECONDS: Final = 0.1
"""A parent that is to be synced again sooner is synced after this time: `1e-9` would be a busy loop."""


def sync_answer(body: bytes, *, is_strict: bool, keys: HookKeys) -> Answer:
    """The answer in the `body` of a hook's response. Raises InvalidAnswer, which names the invalid field."""
    read = body_of(body, keys=keys.answer_fields, is_strict=is_strict, elements=keys.children)
    raw = read.fields
    if raw.get("finalized") is not True:
        check_misspelt(read, keys.children, otherwise=f"all {keys.children} would be deleted")
    return Answer(
        status=status_in(raw.get("status")),
        children=_children(raw, keys.children),
        resync_after_seconds=seconds_in(raw.get("resyncAfterSeconds")),
        finalized=_flag(raw.get("finalized")),
        labels=_changes(raw, "labels") if keys.edits_metadata else {},
        annotations=_changes(raw, "annotations") if keys.edits_metadata else {},
        unknown_keys=read.unknown_keys,
    )


def status_in(raw: JsonValue) -> JsonObject | None:
    """The `status` of an answer; None if it has none. Raises InvalidAnswer."""
    if raw is None or is_object(raw):
        return raw
    raise InvalidAnswer("status", f"must be an object, not {type_name(raw)}")


def _children(answer: JsonObject, key: str) -> tuple[JsonObject, ...]:
    raw = answer.get(key)
    if raw is None:
        return ()
    if not isinstance(raw, list):
        raise InvalidAnswer(key, f"must be a list, not {type_name(raw)}")
    return tuple([_child(item, f"{key}[{index}]") for index, item in enumerate(raw)])


def _child(raw: JsonValue, field: str) -> JsonObject:
    if not is_object(raw):
        raise InvalidAnswer(field, f"must be an object, not {type_name(raw)}")
    kind = raw.get("kind")
    if not isinstance(kind, str) or not kind:
        raise InvalidAnswer(f"{field}.kind", "must be a non-empty string")
    return raw


def _changes(answer: JsonObject, key: str) -> MetadataChanges:
    raw = answer.get(key)
    if raw is None:
        return {}
    if not is_object(raw):
        raise InvalidAnswer(key, f"must be an object, not {type_name(raw)}")
    changes: dict[str, str | None] = {}
    for name, value in raw.items():
        if value is not None and not isinstance(value, str):
            raise InvalidAnswer(f"{key}.{name}", f"must be a string or null, not {type_name(value)}")
        changes[name] = value
    return changes


def seconds_in(raw: JsonValue, field: str = "resyncAfterSeconds") -> float | None:
    """The time at `field` of an answer; None if it has none. Raises InvalidAnswer."""
    if raw is None:
        return None
    if isinstance(raw, bool) or not isinstance(raw, (int, float)):
        raise InvalidAnswer(field, f"must be a number, not {type_name(raw)}")
    return max(float(raw), LEAST_RESYNC_SECONDS) if raw > 0 else None


def _flag(raw: JsonValue) -> bool:
    if raw is None or isinstance(raw, bool):
        return bool(raw)
    raise InvalidAnswer("finalized", f"must be true or false, not {type_name(raw)}")
