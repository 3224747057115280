"""Server-side apply: what to send, and when sending it would change nothing.

We send the whole configuration, and the API server merges it: it knows which fields we own (our entry in
`managedFields`), and removes those that we own and no longer send. Whether sending would change anything can be read
from that entry and the object itself, so nobody has to record what was sent.

Rules
    1. A field that somebody else changes leaves our entry. So each field that we own is as we sent it, or as the API
       server stores what we sent.
    2. A child is *changed* if a desired value is not in it, or if we own something that is no longer desired.
    3. A child that is as desired is *owned* if we own all that is desired and nothing else. If it is not, it is applied
       once more.
    4. Something that is owned as a whole (an atomic list or object) may contain more than is desired only if these are
       known defaults.
    5. A null states nothing and is not sent, unless a kind's own schema gives it a meaning. The same holds for an empty
       value that the API server fills.
    6. A child that was written by dynamic apply, or by nobody with an apply, has no entry of ours. It is compared by
       dynamic apply's three-way merge.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references
from metaloop.reconciler.core.apply.atomic import is_same_atomic
from metaloop.reconciler.core.apply.configuration import INT64_LIMIT, as_stored, with_whole_numbers, without_echo, without_system_fields
from metaloop.reconciler.core.apply.field_set import FieldSet, elements_of, field_key, fields_of, is_element, is_set, values_of
from metaloop.reconciler.core.apply.list_map import KEY_DEFAULTS
from metaloop.reconciler.core.apply.merge import NEVER_APPLIED, merge
from metaloop.reconciler.core.apply.schema import Schema

_UNTRACKED: Final = ("apiVersion", "kind")
_UNTRACKED_METADATA: Final = ("name", "namespace")
"""What `managedFields` never lists."""


def configuration_of(desired: JsonObject, *, owner: JsonObject | None, schema: Schema) -> JsonObject:
    """What to send: all that is desired, with `owner` as the controllerRef and without system fields."""
    configuration = without_system_fields(as_stored(without_echo(desired)))
    stated = _only_stated(with_whole_numbers(configuration, below=INT64_LIMIT), schema)
    sent = stated if is_object(stated) else configuration
    if owner is None:
        return sent
    metadata = unstructured.metadata(sent)
    named = metadata.get("ownerReferences")
    others = [each for each in named if not (is_object(each) and each.get("uid") == owner.get("uid"))] if isinstance(named, list) else []
    return {**sent, "metadata": {**metadata, "ownerReferences": [*others, owner]}}


def controller_reference_in(observed: JsonObject) -> JsonObject | None:
    """The entry of `ownerReferences` that names the object's controller, as it is; None if there is none."""
    return next((each for each in owner_references(observed) if each.get("controller") is True), None)


def _only_stated(value: JsonValue, schema: Schema) -> JsonValue:
    if isinstance(value, dict):
        inner = schema.of
        return {key: _only_stated(each, inner(key)) for key, each in value.items() if each or _is_stated(each, inner(key))}
    if isinstance(value, list):
        return [_only_stated(each, schema.items) for each in value]
    return value


def _is_stated(empty: JsonValue, schema: Schema) -> bool:
    return not schema.fills_empty and (empty is not None or schema.is_nullable)


def _tracked(configuration: JsonObject) -> JsonObject:
    metadata = unstructured.metadata(configuration)
    return {
        **{key: value for key, value in configuration.items() if key not in _UNTRACKED},
        "metadata": {key: value for key, value in metadata.items() if key not in _UNTRACKED_METADATA},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What sending a configuration would change."""

    is_changed: bool
    """Whether a desired value is not in the object, or we own something that is no longer desired."""
    is_owned: bool
    """Whether we own all that is desired, and nothing else."""


def difference_of(configuration: JsonObject, observed: JsonObject, *, owned: FieldSet, schema: Schema) -> Difference:
    """What sending `configuration` would change in an object of which we own these fields."""
    comparison = _Comparison()
    comparison.compare_objects(_tracked(configuration), observed, owned=owned, schema=schema)
    return Difference(is_changed=comparison.is_changed, is_owned=comparison.is_owned)


class _Comparison:
    """Compares a configuration with an object part by part, and collects what was found."""

    def __init__(self) -> None:
        """Begin with no difference found."""
        self.is_changed = False
        self.is_owned = True

    def compare_objects(self, desired: JsonObject, observed: JsonValue, *, owned: FieldSet, schema: Schema) -> None:
        """Compare objects that are owned field by field."""
        present = observed if is_object(observed) else {}
        for key, each in desired.items():
            inner = owned.get(field_key(key))
            self._compare(each, present.get(key), owned=inner if is_object(inner) else None, schema=schema.of(key))
        for key, _ in fields_of(owned):
            if key not in desired:
                self._no_longer_desired(present.get(key))

    def _compare(self, desired: JsonValue, observed: JsonValue, *, owned: FieldSet | None, schema: Schema) -> None:
        if owned is None and is_object(desired) and desired and not schema.is_atomic:
            self.compare_objects(desired, observed, owned={}, schema=schema)
        elif owned is None:
            self._not_owned(desired, observed, schema=schema)
        elif not owned or (not desired and _is_atomic(desired, schema)):
            self._compare_atomic(desired, observed, schema=schema)
        elif is_object(desired):
            self.compare_objects(desired, observed, owned=owned, schema=schema)
        elif isinstance(desired, list) and is_set(owned):
            self._compare_sets(desired, observed if isinstance(observed, list) else [], owned=owned)
        elif isinstance(desired, list):
            self._compare_maps(desired, observed if isinstance(observed, list) else [], owned=owned, schema=schema)
        else:
            self.is_changed = True

    def _not_owned(self, desired: JsonValue, observed: JsonValue, *, schema: Schema) -> None:
        if not desired and (
            (not observed and (isinstance(desired, (dict, list)) or schema.drops_empty)) or not _is_atomic(desired, schema)
        ):
            return
        self.is_owned = False
        if observed is None or merge(observed, NEVER_APPLIED, desired, schema) is not observed:
            self.is_changed = True

    def _no_longer_desired(self, observed: JsonValue) -> None:
        self.is_owned = False
        if observed is not None:
            self.is_changed = True

    def _compare_atomic(self, desired: JsonValue, observed: JsonValue, *, schema: Schema) -> None:
        # An empty value that isn't atomic asks for nothing. What is in the observed one belongs to others.
        if (desired or _is_atomic(desired, schema)) and not is_same_atomic(desired, observed, schema):
            self.is_changed = True

    def _compare_maps(self, desired: list[JsonValue], observed: list[JsonValue], *, owned: FieldSet, schema: Schema) -> None:
        left = list(elements_of(owned))
        defaults = schema.key_defaults or KEY_DEFAULTS
        for each in desired:
            found = next((entry for entry in left if is_element(each, entry[0], defaults)), None)
            if found is None:
                self._not_owned(each, _matching(observed, each, schema), schema=schema.items)
                continue
            left.remove(found)
            key, inner = found
            present = next((element for element in observed if is_element(element, key)), None)
            self._compare_elements(each, present, key=key, owned=inner, schema=schema.items)
        for key, _ in left:
            self._no_longer_desired(next((element for element in observed if is_element(element, key)), None))

    def _compare_elements(
        self, desired: JsonValue, observed: JsonValue, *, key: Mapping[str, JsonValue], owned: FieldSet, schema: Schema
    ) -> None:
        if not owned:
            self._compare_atomic(desired, observed, schema=schema)
        elif is_object(desired):
            # The key fields are owned with the element, whether or not the configuration states them.
            beside = {name: each for name, each in desired.items() if name not in key}
            others = {name: each for name, each in owned.items() if name[2:] not in key}
            self.compare_objects(beside, observed, owned=others, schema=schema)
            if observed is None:
                self.is_changed = True

    def _compare_sets(self, desired: list[JsonValue], observed: list[JsonValue], *, owned: FieldSet) -> None:
        values = values_of(owned)
        if any(each not in observed for each in desired) or any(each in observed and each not in desired for each in values):
            self.is_changed = True
        if any(each not in values for each in desired) or any(each not in desired for each in values):
            self.is_owned = False


def _is_atomic(value: JsonValue, schema: Schema) -> bool:
    """Whether an empty value of this schema is owned as a whole."""
    if isinstance(value, dict):
        return schema.is_atomic
    return not isinstance(value, list) or schema.list_type in {"atomic", "unknown"}


def _matching(observed: list[JsonValue], desired: JsonValue, schema: Schema) -> JsonValue:
    """The observed element with the key of the desired one; None if there is none."""
    keys = schema.keys or ("name",)
    if not is_object(desired):
        return None
    key = {name: desired.get(name, schema.key_defaults.get(name)) for name in keys}
    return next((element for element in observed if is_element(element, key)), None)
