"""The walks in docs/architecture.md name functions that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_SERVICE = re.compile(r"^\*\*.*\*\* \((\w+)\)$")
_MODULE_OR_NAME = re.compile(r"`([\w/]+\.py)`|`([A-Za-z_][\w.]*)`")


def steps() -> list[tuple[str, str, str]]:
    """Service, module and function of each step, in order."""
    text = (ROOT / "docs" / "architecture.md").read_text().partition("\n## Walks\n")[2].partition("\n## ")[0]
    service, found = "", list[tuple[str, str, str]]()
    for line in text.splitlines():
        if heading := _SERVICE.match(line):
            service = heading[1]
        module = ""
        for path, name in _MODULE_OR_NAME.findall(line) if re.match(r"\d+\. ", line) else ():
            module = path or module
            if name and name[0].isalpha() and ("." in name or name in {"drive", "sync", "answer_to", "verdict_of_answer"}):
                found.append((service, module, name))
    return found


def defined_in(path: Path) -> set[str]:
    """The functions of a module and the methods of its classes, as `function` and `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
    return names


@pytest.mark.parametrize(("service", "module", "name"), steps())
def test_step_of_a_walk_exists(service: str, module: str, name: str):
    assert name in defined_in(ROOT / "services" / service / "src" / "metaloop" / service / module)


def test_there_are_four_walks_of_several_steps():
    services = [service for service, _, _ in steps()]

    assert set(services) == {"watcher", "reconciler", "hookgateway"}
    assert len(services) >= 20
