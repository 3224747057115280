"""The one version of everything: that of the workspace's pyproject.toml, and the places that have to repeat it."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NUMBER = r"(?P<version>\d+\.\d+\.\d+[0-9A-Za-z.+-]*)"
_PLACES: dict[str, tuple[str, ...]] = {
    "pyproject.toml": (rf'^version = "{_NUMBER}"$',),
    "libs/*/pyproject.toml": (rf'^version = "{_NUMBER}"$', rf'^  "metaloop-[a-z]+=={_NUMBER}",$'),
    "services/*/pyproject.toml": (rf'^version = "{_NUMBER}"$', rf'^  "metaloop-[a-z]+=={_NUMBER}",$'),
    "deploy/Dockerfile": (rf"^ARG VERSION={_NUMBER}$",),
    "deploy/chart/Chart.yaml": (rf"^version: {_NUMBER}$", rf"^appVersion: {_NUMBER}$"),
    "deploy/kustomize/base/kustomization.yaml": (rf"^  newTag: {_NUMBER}$",),
    "deploy/kustomize/components/credentials/kustomization.yaml": (rf"^  newTag: {_NUMBER}$",),
}
"""The files that hold the version, and how each of their lines does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One place where the version stands."""

    file: Path
    """Relative to the repository."""
    line: int
    version: str


def version_of(root: Path) -> str:
    """The version of the repository at `root`."""
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]


def mentions(root: Path) -> Iterator[Mention]:
    """Every place where the version stands; raises LookupError for a place that holds none."""
    for file, pattern in _places(root):
        text = file.read_text()
        found = [*re.finditer(pattern, text, re.MULTILINE)]
        if not found and "==" not in pattern:
            raise LookupError(f"{file} holds no version like {pattern}")
        for match in found:
            line = text.count("\n", 0, match.start()) + 1
            yield Mention(file=file.relative_to(root), line=line, version=match["version"])


def set_version(root: Path, version: str) -> None:
    """Write a version to every place where one stands; raises ValueError if it is none."""
    if not re.fullmatch(_NUMBER, version):
        raise ValueError(f"{version!r} is no version such as 1.2.3")
    for file, pattern in _places(root):
        file.write_text(re.sub(pattern, lambda match: _with(match, version), file.read_text(), flags=re.MULTILINE))


def _with(match: re.Match[str], version: str) -> str:
    """The matched text with another version."""
    start, end = (offset - match.start() for offset in match.span("version"))
    return f"{match[0][:start]}{version}{match[0][end:]}"


def _places(root: Path) -> Iterator[tuple[Path, str]]:
    for glob, patterns in _PLACES.items():
        files = sorted(root.glob(glob))
        if not files:
            raise LookupError(f"there is no {glob}")
        for file in files:
            yield from ((file, pattern) for pattern in patterns)
