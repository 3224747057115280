"""What is published: packages, the image's context, the chart, rendered manifests, a bill of materials, checksums.

All of it is made of the current commit; what is not committed is left out of the image's context.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from release.chart import package_chart
from release.licences import licences_in, table_of
from release.version import version_of

_IN_THE_IMAGE = ("common", "watcher", "reconciler", "hookgateway")
_IMAGE_CONTEXT = ("LICENSE", "NOTICE", "requirements.lock", "deploy/Dockerfile", "libs/common", "services")
_CYCLONEDX = "cyclonedx-bom==7.5.0"
"""Used for releases alone, and its 30 dependencies are not needed otherwise: so it is none of the development tools."""
SUMS = "SHA256SUMS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The programs that a release is made with."""

    uv: str
    kubectl: str


def write_dist(root: Path, into: Path, tools: Tools) -> list[Path]:
    """Write all files of a release into a new folder, and return them; the last one holds the others' checksums.

    Raises CalledProcessError if a program fails.
    """
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    name = f"metaloop-{version_of(root)}"
    _run(tools.uv, "build", "--quiet", "--all-packages", "--out-dir", into, cwd=root)
    (into / ".gitignore").unlink(missing_ok=True)
    _run("git", "archive", "--format=tar.gz", f"--prefix={name}/", "-o", into / f"{name}-image.tar.gz", "HEAD", *_IMAGE_CONTEXT, cwd=root)
    package_chart(root / "deploy" / "chart", into / f"{name}-chart.tgz")
    for overlay in overlays(root):
        rendered = _run(tools.kubectl, "kustomize", overlay, cwd=root)
        (into / f"{name}-{overlay.name}.yaml").write_text(rendered)
    with _installed(root, into, tools) as environment:
        bom = into / f"{name}.cdx.json"
        _run(tools.uv, "tool", "run", "--from", _CYCLONEDX, "cyclonedx-py", "environment", "--output-file", bom, environment, cwd=root)
        [site_packages] = environment.glob("lib/python*/site-packages")
        (into / f"{name}-licences.md").write_text(table_of(licences_in(site_packages)))
    (into / SUMS).write_text(sums_of(into))
    return [*sorted(file for file in into.iterdir() if file.name != SUMS), into / SUMS]


def overlays(root: Path) -> list[Path]:
    """The overlays that are rendered for a release."""
    return sorted(file.parent for file in root.glob("deploy/kustomize/overlays/*/kustomization.yaml"))


def sums_of(folder: Path) -> str:
    """A line for each file of a folder, as `sha256sum` writes and checks them."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and file.name != SUMS)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


@contextmanager
def _installed(root: Path, wheels: Path, tools: Tools) -> Iterator[Path]:
    """A virtual environment with exactly what the image holds, for as long as the block lasts."""
    version = version_of(root)
    packages = [next(wheels.glob(f"metaloop_{part}-{version}-*.whl")) for part in _IN_THE_IMAGE]
    with tempfile.TemporaryDirectory(prefix="metaloop-dist-") as folder:
        environment = Path(folder) / "venv"
        _run(tools.uv, "venv", "--quiet", "--python", sys.executable, environment, cwd=root)
        lock = root / "requirements.lock"
        _run(tools.uv, "pip", "install", "--quiet", "--python", environment, "--no-sources", "--constraint", lock, *packages, cwd=root)
        yield environment


def _run(*command: str | Path, cwd: Path) -> str:
    """What a program prints. Its complaints go to stderr."""
    return subprocess.run([str(word) for word in command], cwd=cwd, check=True, stdout=subprocess.PIPE, text=True).stdout
