"""The architecture holds: who may import whom, and that what is shared is shared."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from importlinter import cli

ROOT = Path(__file__).parents[2]
SERVICES = ("watcher", "reconciler", "hookgateway")
COMMON = ROOT / "libs/common/src/metaloop/common"
PARTS = [ROOT / "libs/devkit/src", *(ROOT / "services" / service / "src" for service in SERVICES)]

# What a core may not know of: it is given everything, and returns a value.
IMPURE = {"asyncio", "time", "logging", "structlog", "aiohttp", "httpx", "nats", "kubernetes", "random", "os", "socket", "threading"}

# Third parties that have one home; everywhere else our own words for them are used.
HOMES = {"kubernetes": "common/kube", "nats": "common/bus/nats"}


def test_import_contracts_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)

    assert cli.lint_imports() == cli.EXIT_STATUS_SUCCESS


@pytest.mark.parametrize("module", [*ROOT.glob("services/*/src/metaloop/*/core/*.py")], ids=lambda path: "/".join(path.parts[-3:]))
def test_core_knows_no_clock_and_no_network_and_never_awaits(module: Path) -> None:
    tree = ast.parse(module.read_text())

    assert _imported(tree) & IMPURE == set()
    assert not any(isinstance(node, (ast.Await, ast.AsyncFunctionDef)) for node in ast.walk(tree))


@pytest.mark.parametrize("package", HOMES)
def test_third_party_has_one_home(package: str) -> None:
    users = {file for file in _sources() if package in _imported(ast.parse(file.read_text()))}

    assert [str(file) for file in users if HOMES[package] not in str(file)] == []


@pytest.mark.parametrize("service", SERVICES)
def test_service_never_imports_what_is_for_tests(service: str) -> None:
    files = (ROOT / "services" / service / "src").rglob("*.py")

    assert [str(file) for file in files if "metaloop.common.testing" in file.read_text()] == []


@pytest.mark.parametrize("module", [*COMMON.glob("*.py")], ids=lambda path: path.stem)
def test_common_module_has_two_users(module: Path) -> None:
    """What one part alone needs lives there; a piece of what is shared is shared with it."""
    if module.stem == "__init__":
        pytest.skip("the package itself")
    name = f"metaloop.common.{module.stem}"
    users = {part for part in PARTS if any(_mentions(file, name) for file in part.rglob("*.py"))}
    is_piece = any(_mentions(file, name) for file in COMMON.rglob("*.py") if file != module)

    assert is_piece or len(users) >= 2, f"{name} is used by {[str(user) for user in users]}"


@pytest.mark.parametrize(
    "module",
    [*ROOT.glob("libs/*/src/metaloop/**/*.py"), *ROOT.glob("services/*/src/metaloop/**/*.py")],
    ids=lambda path: "/".join(path.parts[-3:]),
)
def test_module_says_what_it_is_for_and_stays_readable(module: Path) -> None:
    text = module.read_text()

    assert ast.get_docstring(ast.parse(text)), "no module docstring"
    assert text.count("\n") <= 500


def _sources() -> Iterator[Path]:
    yield from ROOT.glob("libs/*/src/**/*.py")
    yield from ROOT.glob("services/*/src/**/*.py")


def _mentions(file: Path, module: str) -> bool:
    package, _, leaf = module.rpartition(".")
    text = file.read_text()
    return module in text or f"from {package} import {leaf}" in text


def _imported(tree: ast.Module) -> set[str]:
    """The top-level names of what a module imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found
