"""Services read clocks and draw random numbers through metaloop.common.machine only: a simulation replaces both."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (ROOT / "libs/common/src", *sorted((ROOT / "services").glob("*/src")))
SOURCES = [path for package in PACKAGES for path in sorted(package.rglob("*.py")) if "testing" not in path.parts]
ALLOWED = {
    "libs/common/src/metaloop/common/machine.py": {"time", "random", "datetime.now"},
    "libs/common/src/metaloop/common/kube/provision.py": {"secrets"},  # makes passwords, which nobody may repeat
    "libs/common/src/metaloop/common/kube/transport.py": {"time"},  # measures real requests, for a metric only
}


def readings(tree: ast.AST) -> Iterator[str]:
    """The modules of clocks and random numbers that are imported, and dates that are read off the system's clock."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name in {"time", "random", "uuid", "secrets"})
            case ast.ImportFrom(module="time" | "random" | "uuid" | "secrets" as module):
                yield module
            case ast.Attribute(value=ast.Name(id="datetime"), attr="now" | "utcnow" | "today" as read):
                yield f"datetime.{read}"
            case _:
                pass


def test_sources_are_found():
    assert len(SOURCES) > 150


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_module_reads_a_clock_or_draws_numbers_by_itself(path: Path):
    allowed = ALLOWED.get(path.relative_to(ROOT).as_posix(), set[str]())

    assert set(readings(ast.parse(path.read_text()))) <= allowed


@pytest.mark.parametrize(
    ("source", "read"), [("import time", "time"), ("from random import uniform", "random"), ("datetime.now(UTC)", "datetime.now")]
)
def test_a_reading_is_noticed(source: str, read: str):
    assert list(readings(ast.parse(source))) == [read]
