"""The table of kinds and the table of update methods say what the CustomResourceDefinitions say."""

from collections.abc import Iterator
from importlib.resources import files

import pytest
import yaml

from metaloop.common.api.kinds import KINDS, ControllerKind
from metaloop.common.api.rules import UPDATE_METHODS
from metaloop.common.json import JsonObject, JsonValue, is_object
from metaloop.common.objects.unstructured import child_object


def definition_of(kind: ControllerKind) -> JsonObject:
    """The CustomResourceDefinition that is installed for a kind."""
    return yaml.safe_load((files("metaloop.devkit") / "crds" / f"{kind.resource.resource}.yaml").read_text())


def enums_at(schema: JsonValue, field: str) -> Iterator[JsonValue]:
    """The `enum` of every property of this name, wherever it stands."""
    if isinstance(schema, list):
        for each in schema:
            yield from enums_at(each, field)
    elif is_object(schema):
        for key, value in schema.items():
            if key == field and is_object(value) and "enum" in value:
                yield value["enum"]
            yield from enums_at(value, field)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_is_named_as_its_definition_names_it(kind: ControllerKind):
    spec = child_object(definition_of(kind), "spec")
    names = child_object(spec, "names")

    assert (kind.name, kind.resource.resource, [*kind.short_names]) == (names["kind"], names["plural"], names["shortNames"])
    assert (kind.resource.group, kind.resource.namespaced) == (spec["group"], spec["scope"] == "Namespaced")


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_definitions_allow_exactly_the_update_methods_of_the_table(kind: ControllerKind):
    enums = list(enums_at(definition_of(kind), "method"))

    assert enums
    assert all(enum == [*UPDATE_METHODS] for enum in enums)
