"""What a package carries with it: licence, readme, and metadata by which an index can show it."""

import subprocess
import tomllib
from pathlib import Path

import pytest

from release.dist import SUMS, overlays, sums_of

ROOT = Path(__file__).parents[2]
PACKAGES = [*sorted(ROOT.glob("libs/*")), *sorted(ROOT.glob("services/*"))]


@pytest.mark.parametrize("package", PACKAGES, ids=lambda folder: folder.name)
def test_package_has_licence_readme_and_description(package: Path):
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]

    assert (project["license"], project["license-files"], project["readme"]) == ("Apache-2.0", ["LICENSE"], "README.md")
    assert project["description"]
    assert (package / "README.md").read_text().startswith(f"# {project['name']}\n")
    assert (package / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_checksums_are_those_that_sha256sum_accepts(tmp_path: Path):
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "b.yaml").write_bytes(b"b")

    (tmp_path / SUMS).write_text(sums_of(tmp_path))

    checked = subprocess.run(["sha256sum", "--check", SUMS], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout.split()) == (0, ["a.whl:", "OK", "b.yaml:", "OK"])


def test_every_overlay_is_rendered_for_a_release():
    assert {"dev", "ha"} <= {overlay.name for overlay in overlays(ROOT)}
