"""Server-side apply: what to send, and when sending would change nothing.

We send the whole of what is desired, and the API server merges: it knows which fields we own (our entry in `managedFields`) and takes away those that we own and
don't send any more. Whether sending would change anything is seen in that entry and in the object itself, so nobody has to remember what was sent.

Rules
    1. A field that anybody else changes is ours no longer, in the entry. So what we own is as we sent it, or as the API server keeps what we sent.
    2. A child is *changed* where a desired value is not there, or where we own what isn't desired any more.
    3. A child that is as desired is *remembered* where we own all that is desired, and nothing else. Otherwise it is applied once more, to own it.
    4. What is owned as a whole (a list or object that is atomic) may have more in it than was desired: only where those are known defaults.
    5. A null states nothing, and isn't sent: except where a kind's own schema gives it a meaning. Nor does an empty value that the API server fills.
    6. A child that dynamic apply wrote, and one that nobody applied, are judged by dynamic apply's three-way merge: they have no entry of ours to go by.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.atomic import is_same_atomic
from metaloop.reconciler.core.apply.configuration import as_stored, with_whole_numbers, without_echo, without_system_fields
from metaloop.reconciler.core.apply.field_set import FieldSet, elements_of, field_key, fields_of, is_element, is_set, values_of
from metaloop.reconciler.core.apply.list_map import KEY_DEFAULTS
from metaloop.reconciler.core.apply.merge import NEVER_APPLIED, merge
from metaloop.reconciler.core.apply.schema import Schema

_UNTRACKED: Final = ("apiVersion", "kind")
_UNTRACKED_METADATA: Final = ("name", "namespace")


def configuration_of(desired: JsonObject, *, owner: JsonObject | None, schema: Schema) -> JsonObject:
    """What is sent: all that is desired and the controllerRef that is there, and nothing that is not ours to say."""
    configuration = without_system_fields(as_stored(without_echo(desired)))
    whole = _only_stated(with_whole_numbers(configuration), schema)
    sent = whole if is_object(whole) else configuration
    if owner is None:
        return sent
    metadata = unstructured.metadata(sent)
    named = metadata.get("ownerReferences")
    others = [each for each in named if not (is_object(each) and each.get("uid") == owner.get("uid"))] if isinstance(named, list) else []
    return {**sent, "metadata": {**metadata, "ownerReferences": [*others, owner]}}


def controller_reference_in(observed: JsonObject) -> JsonObject | None:
    """The reference to the controller of an object, as it stands there; None where it has none."""
    references = unstructured.metadata(observed).get("ownerReferences")
    entries = references if isinstance(references, list) else []
    return next((each for each in entries if is_object(each) and each.get("controller") is True), None)


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
    """Whether a desired value is not there, or we own what isn't desired any more."""
    is_owned: bool
    """Whether we own all that is desired, and nothing else."""


def difference_of(configuration: JsonObject, observed: JsonObject, *, owned: FieldSet, schema: Schema) -> Difference:
    """What sending a configuration would change of an object of which these fields are `owned` by us."""
    comparison = _Comparison()
    comparison.compare_objects(_tracked(configuration), observed, owned=owned, schema=schema)
    return Difference(is_changed=comparison.is_changed, is_owned=comparison.is_owned)


class _Comparison:
    """What a configuration would change, found out part by part."""

    def __init__(self) -> None:
        """Nothing, so far."""
        self.is_changed = False
        self.is_owned = True

    def compare_objects(self, wanted: JsonObject, there: JsonValue, *, owned: FieldSet, schema: Schema) -> None:
        """Objects that are owned field by field."""
        present = there if is_object(there) else {}
        for key, each in wanted.items():
            inner = owned.get(field_key(key))
            self._compare(each, present.get(key), owned=inner if is_object(inner) else None, schema=schema.of(key))
        for key, _ in fields_of(owned):
            if key not in wanted:
                self._no_longer_wanted(present.get(key))

    def _compare(self, wanted: JsonValue, there: JsonValue, *, owned: FieldSet | None, schema: Schema) -> None:
        if owned is None and is_object(wanted) and wanted and not schema.is_atomic:
            self.compare_objects(wanted, there, owned={}, schema=schema)
        elif owned is None:
            self._not_owned(wanted, there, schema=schema)
        elif not owned or (not wanted and _is_atomic(wanted, schema)):
            self._compare_atomic(wanted, there, schema=schema)
        elif is_object(wanted):
            self.compare_objects(wanted, there, owned=owned, schema=schema)
        elif isinstance(wanted, list) and is_set(owned):
            self._compare_sets(wanted, there if isinstance(there, list) else [], owned=owned)
        elif isinstance(wanted, list):
            self._compare_maps(wanted, there if isinstance(there, list) else [], owned=owned, schema=schema)
        else:
            self.is_changed = True

    def _not_owned(self, wanted: JsonValue, there: JsonValue, *, schema: Schema) -> None:
        if not wanted and ((not there and (isinstance(wanted, (dict, list)) or schema.drops_empty)) or not _is_atomic(wanted, schema)):
            return
        self.is_owned = False
        if there is None or merge(there, NEVER_APPLIED, wanted, schema) is not there:
            self.is_changed = True

    def _no_longer_wanted(self, there: JsonValue) -> None:
        self.is_owned = False
        if there is not None:
            self.is_changed = True

    def _compare_atomic(self, wanted: JsonValue, there: JsonValue, *, schema: Schema) -> None:
        # An empty one that isn't atomic asks for nothing: what is in there is others'.
        if (wanted or _is_atomic(wanted, schema)) and not is_same_atomic(wanted, there, schema):
            self.is_changed = True

    def _compare_maps(self, wanted: list[JsonValue], there: list[JsonValue], *, owned: FieldSet, schema: Schema) -> None:
        left = list(elements_of(owned))
        defaults = schema.key_defaults or KEY_DEFAULTS
        for each in wanted:
            found = next((entry for entry in left if is_element(each, entry[0], defaults)), None)
            if found is None:
                self._not_owned(each, _matching(there, each, schema), schema=schema.items)
                continue
            left.remove(found)
            key, inner = found
            present = next((element for element in there if is_element(element, key)), None)
            self._compare_elements(each, present, key=key, owned=inner, schema=schema.items)
        for key, _ in left:
            self._no_longer_wanted(next((element for element in there if is_element(element, key)), None))

    def _compare_elements(
        self, wanted: JsonValue, there: JsonValue, *, key: Mapping[str, JsonValue], owned: FieldSet, schema: Schema
    ) -> None:
        if not owned:
            self._compare_atomic(wanted, there, schema=schema)
        elif is_object(wanted):
            # The key is owned with the element, whether or not it was mentioned.
            beside = {name: each for name, each in wanted.items() if name not in key}
            others = {name: each for name, each in owned.items() if name[2:] not in key}
            self.compare_objects(beside, there, owned=others, schema=schema)
            if there is None:
                self.is_changed = True

    def _compare_sets(self, wanted: list[JsonValue], there: list[JsonValue], *, owned: FieldSet) -> None:
        values = values_of(owned)
        if any(each not in there for each in wanted) or any(each in there and each not in wanted for each in values):
            self.is_changed = True
        if any(each not in values for each in wanted) or any(each not in wanted for each in values):
            self.is_owned = False


def _is_atomic(value: JsonValue, schema: Schema) -> bool:
    """Whether it is owned as a whole, empty as it is."""
    if isinstance(value, dict):
        return schema.is_atomic
    return not isinstance(value, list) or schema.list_type in {"atomic", "unknown"}


def _matching(there: list[JsonValue], wanted: JsonValue, schema: Schema) -> JsonValue:
    keys = schema.keys or ("name",)
    if not is_object(wanted):
        return None
    key = {name: wanted.get(name, schema.key_defaults.get(name)) for name in keys}
    return next((element for element in there if is_element(element, key)), None)
