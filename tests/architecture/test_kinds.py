"""The table of kinds and the table of update methods say what the CustomResourceDefinitions say."""

import ast
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from metaloop.common.api.kinds import KINDS, ControllerKind
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
def test_definitions_allow_exactly_the_update_methods_of_the_kind(kind: ControllerKind):
    enums = list(enums_at(definition_of(kind), "method"))

    assert bool(enums) == bool(kind.update_methods)
    assert all(enum == [*kind.update_methods] for enum in enums)


ROOT = Path(__file__).parents[2]


def test_chart_installs_every_definition():
    packaged = {path.name: path.read_text() for path in (ROOT / "libs/devkit/src/metaloop/devkit/crds").glob("*s.yaml")}

    in_chart = {path.name: path.read_text() for path in (ROOT / "deploy/chart/crds").iterdir()}

    assert len(packaged) > len(KINDS)
    assert in_chart == packaged


_HOMES = (
    "libs/common/src/metaloop/common/api",
    "services/reconciler/src/metaloop/reconciler/core/kinds",
    "services/watcher/src/metaloop/watcher/core/kinds",
    "libs/devkit/src/metaloop/devkit/testbed",
    "libs/devkit/src/metaloop/devkit/demo",
    "libs/common/src/metaloop/common/testing",
    *(f"libs/simulation/src/metaloop/simulation/{stories}.py" for stories in ("stories", "more_stories", "map_story")),
)
"""Where kinds may be named: their own modules and registries, and what writes manifests of them."""
SOURCES = sorted(
    path
    for path in [*ROOT.glob("libs/*/src/**/*.py"), *ROOT.glob("services/*/src/**/*.py")]
    if not str(path.relative_to(ROOT)).startswith(_HOMES)
)


def named_in(source: str) -> list[str]:
    """The kinds that code names: as a class, a string, or by the module of the kind. Docstrings may name them."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    names = [*KINDS, *(kind.resource.resource for kind in KINDS.values())]
    modules = {kind.parse.__module__ for kind in KINDS.values()}
    found: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in KINDS:
                found.append(name)
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                found += [name for name in names if name in text]
            case ast.ImportFrom(module=str(module), names=aliases):
                imported = {module, *(f"{module}.{alias.name}" for alias in aliases)}
                found += sorted(imported & modules)
            case _:
                pass
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_outside_the_registries_names_a_kind(path: Path):
    assert named_in(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "isinstance(controller, CompositeController)",
        "kind == 'DecoratorController'",
        "path = '/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers'",
        "from metaloop.common.api import composite",
        "from metaloop.common.api.decorator import KIND",
        "if isinstance(x, api.CompositeController): ...",
    ],
)
def test_a_kind_that_is_named_is_found(source: str):
    assert named_in(source)


def test_a_docstring_may_speak_of_a_kind():
    assert named_in('"""As CompositeController has it."""') == []
