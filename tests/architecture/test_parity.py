"""What the page on parity says is held by tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"\b(e2e|common|devkit|watcher|reconciler|hookgateway)/([a-z_/]*test_[a-z_]+)(?:::(test_[a-z_0-9]+))?")
FOLDERS = {
    "e2e": "tests/e2e",
    "common": "libs/common/tests",
    "devkit": "libs/devkit/tests",
    "watcher": "services/watcher/tests",
    "reconciler": "services/reconciler/tests",
    "hookgateway": "services/hookgateway/tests",
}


def named_tests() -> list[tuple[str, str, str]]:
    """Folder, file and test of each mention."""
    return sorted(set(_NAMED.findall((ROOT / "docs" / "parity.md").read_text())))


@pytest.mark.parametrize(("folder", "file", "test"), named_tests())
def test_test_that_is_named_exists(folder: str, file: str, test: str) -> None:
    source = (ROOT / FOLDERS[folder] / f"{file}.py").read_text()

    assert f"def {test}(" in source or not test


def test_every_surprise_names_its_test() -> None:
    table = (ROOT / "docs" / "parity.md").read_text().partition("and the test that holds ours")[2].partition("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]

    assert [row for row in rows if not _NAMED.search(row[-1]) and "the same |" not in row[-1] + "|"] == []
