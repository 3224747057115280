"""One version: every package, manifest and image has that of the workspace."""

import shutil
from pathlib import Path

import pytest

from release.version import mentions, set_version, version_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of the repository that hold the version."""
    for file in {mention.file for mention in mentions(ROOT)}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def test_every_place_has_the_version_of_the_workspace():
    version = version_of(ROOT)

    assert [mention for mention in mentions(ROOT) if mention.version != version] == []


def test_packages_need_one_another_in_their_own_version():
    loose = [
        f"{file.parent.name}: {line.strip()}"
        for file in [*ROOT.glob("libs/*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml")]
        for line in file.read_text().splitlines()
        if line.startswith('  "metaloop-') and "==" not in line
    ]

    assert loose == []


def test_a_version_is_set_everywhere_and_nothing_else_changes(copy: Path):
    before = {mention.file: (copy / mention.file).read_text() for mention in mentions(copy)}
    version = version_of(copy)

    set_version(copy, "12.3.4rc1")

    assert {mention.version for mention in mentions(copy)} == {"12.3.4rc1"}
    set_version(copy, version)
    assert {file: (copy / file).read_text() for file in before} == before


def test_what_is_no_version_is_refused_and_changes_nothing(copy: Path):
    with pytest.raises(ValueError, match="no version"):
        set_version(copy, "latest")

    assert version_of(copy) == version_of(ROOT)


def test_a_place_without_a_version_is_named(copy: Path):
    (copy / "deploy" / "Dockerfile").write_text("FROM scratch\n")

    with pytest.raises(LookupError, match="Dockerfile holds no version"):
        list(mentions(copy))
