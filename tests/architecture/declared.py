"""What a Python project imports, compared with what its pyproject.toml declares.

Both are compared as distributions. An import is traced to its distribution by the longest module name that some
distribution's files contain: so the packages of a namespace (`opentelemetry.sdk`, `metaloop.common`) are told apart,
and a dependency of a dependency does not count as declared.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path, PurePath

_REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9._-]+")
_MODULE_SUFFIXES = {".py", ".so", ".pyd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A project: its distribution's name, and the names of the distributions that it declares."""

    name: str
    declared: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """Where imports and declarations differ; empty where they agree."""

    undeclared: frozenset[str] = frozenset()
    unused: frozenset[str] = frozenset()


def mismatch(project: Project, imported: AbstractSet[str]) -> Mismatch:
    """What the project imports without declaring it, and declares without importing it."""
    needed = imported - {project.name}
    return Mismatch(undeclared=frozenset(needed - project.declared), unused=project.declared - needed)


def project_at(folder: Path, *, groups: Iterable[str] = ()) -> Project:
    """The project whose pyproject.toml lies in `folder`, with the dependency groups of these names."""
    parsed = tomllib.loads((folder / "pyproject.toml").read_text())
    requirements = [*parsed["project"].get("dependencies", [])]
    for group in groups:
        requirements += parsed["dependency-groups"][group]
    names = (_REQUIREMENT_NAME.match(requirement) for requirement in requirements)
    return Project(name=_normalized(parsed["project"]["name"]), declared=frozenset(_normalized(name[0]) for name in names if name))


def modules_of_workspace(folders: Iterable[Path]) -> dict[str, str]:
    """The distribution of each module under `<folder>/src`."""
    return {
        _module_name(file.relative_to(folder / "src")): project_at(folder).name
        for folder in folders
        for file in (folder / "src").rglob("*.py")
    }


def installed_modules() -> dict[str, str]:
    """The distribution of each module that is installed from a wheel."""
    return {
        _module_name(file): _normalized(distribution.name)
        for distribution in distributions()
        for file in distribution.files or ()
        if file.suffix in _MODULE_SUFFIXES and ".." not in file.parts
    }


def imported_by(files: Iterable[Path], modules: Mapping[str, str], *, local: frozenset[str] = frozenset()) -> set[str]:
    """The distributions that the files import; a module of no known distribution stands for itself, one in `local` is
    ignored.
    """
    found: set[str] = set()
    for file in files:
        for names in _imports(ast.parse(file.read_text())):
            root = names[-1].partition(".")[0]
            if root not in sys.stdlib_module_names and root not in local:
                found.add(next((modules[name] for name in _with_parents(names) if name in modules), root))
    return found


def _imports(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """For each absolute import the modules that it may mean: `from a import b` means `a.b` if that is a module, else
    `a`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{alias.name}", node.module) for alias in node.names)


def _with_parents(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:length]) for length in range(len(parts), 0, -1))


def _module_name(path: PurePath) -> str:
    parts = [*path.parts[:-1], path.name.partition(".")[0]]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
