"""The glossary is in order, defines the public names, and lists terms that are used; words that the project gave up
occur nowhere.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = "docs/glossary.md"

ABANDONED = {
    "reign": r"(?i)\breigns?\b",
    "tenure": r"(?i)\btenures?\b",
    "interest": r"(?i)\binterests?\b",
    "follower": r"(?i)\bfollowers?\b",
    "wish": r"(?i)\bwish(es|ed)?\b",
    "holdings": r"(?i)\bholdings\b",
    "memo": r"(?i)\bmemos?\b",
    "futile": r"(?i)\bfutile\b",
    "happiness": r"(?i)\bhappiness\b",
    "knock": r"(?i)\bknock(s|ed|ing)?\b",
    "crowd": r"(?i)\bcrowd(s|ed)?\b",
    "standing": r"\bStandings?\b|\bstandings\b|\bstanding(?=\.| =)",
    "patient": r"(?i)\bpatients?\b",
    "bearer": r"\bBearers\b|\bbearers\b",
    "tale": r"(?i)\btales?\b",
    "telling": r"(?i)\btelling\b",
    "the original": r"(?i)\bthe[ _]originals?\b",
}
"""Patterns of words that have a term of the field in their place.

Places and turns have too many plain meanings to be found so.
"""

ALLOWED = {
    "docs/decisions/0011-the-bus-is-two-links.md": {"tenure"},  # the wire subject that it explains
    "libs/common/src/metaloop/common/bus/nats/subjects.py": {"tenure"},  # the wire subject: services of two versions meet on it
    "CHANGELOG.md": {"interest", "tenure"},  # what was renamed: a log event and a debug view
    "tests/architecture/test_glossary.py": set(ABANDONED),  # the patterns above
}

_PLATFORM = (
    "Address Announced Applied Apply Body Breaker Budget Byte Cache Caches Catch Certificate Change Class Client Cluster "
    "Condition Conditions Counts Crd Current Decision Decisions Deletion Describe Difference Done Ended Ending Entry Etag Event "
    "Fair Find Flow Forget Found Group Health Id Ignore Index Keep Key Lane Large Later Learn Limits Missing Nats Never Next "
    "No Object Objects Observer Owned Parts Password Permit Policy Problem Progress Purpose Queue Read Recall Record Ref "
    "Replies Request Resource Resources Result Retry Scope Secrets Served Settings Shown Signal Stage State Status "
    "Stream Subject Subjects Summary Ticket Timer Timers Token Touched Undesired Unit Unsupported Up User Wait Waiting Watch "
)
WORDS_OF_THE_PLATFORM = frozenset(_PLATFORM.split())
"""Words of Kubernetes, HTTP, NATS and programming: a public name of nothing but these needs no entry."""

PUBLIC_PACKAGES = (
    "services/hookgateway/src/metaloop/hookgateway/core",
    "services/reconciler/src/metaloop/reconciler/core",
    "services/watcher/src/metaloop/watcher/core",
    "libs/common/src/metaloop/common/bus",
    "libs/common/src/metaloop/common/faults.py",
)


@cache
def tracked_files(*patterns: str) -> list[str]:
    """The files that git knows, by path from the root."""
    listed = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.splitlines() if (ROOT / path).exists()]


@cache
def text_of(path: str) -> str:
    """The text of a file, by its path from the root."""
    return (ROOT / path).read_text()


def glossary() -> list[tuple[str, str]]:
    """Term (without what stands in brackets after it) and line of each entry."""
    lines = (ROOT / GLOSSARY).read_text().splitlines()
    return [(found[1], line) for line in lines if (found := re.match(r"\| \*\*(.+?)\*\*", line))]


def words(term: str) -> str:
    """A pattern of the term in prose, in snake case and in camel case; of one or of many, and as a participle."""
    return r"[ _-]?".join(re.escape(word) for word in re.split(r"[ -]", term)) + "(s|es|ers|ed|ren)?"


def public_names() -> Iterator[str]:
    """The public classes of the packages that hold the project's concepts."""
    for package in PUBLIC_PACKAGES:
        path = ROOT / package
        for module in [path] if path.is_file() else sorted(path.rglob("*.py")):
            for node in ast.walk(ast.parse(module.read_text())):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name


def spaced(name: str) -> str:
    """The words of a class's name with spaces between them."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)


@pytest.mark.parametrize("word", ABANDONED)
def test_abandoned_word_occurs_nowhere(word: str) -> None:
    pattern = re.compile(ABANDONED[word])
    paths = [path for path in tracked_files("*.py", "*.md", "*.yaml") if word not in ALLOWED.get(path, set())]

    found = [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]

    assert found == []


def test_entries_are_in_alphabetical_order() -> None:
    terms = [term.lower() for term, _ in glossary()]

    assert terms == sorted(terms)


@pytest.mark.parametrize(("term", "line"), glossary())
def test_entry_fits_on_two_lines(term: str, line: str) -> None:
    assert len(line) <= 240, term


@pytest.mark.parametrize("term", sorted({term for term, _ in glossary()}))
def test_term_is_used_outside_the_glossary(term: str) -> None:
    pattern = re.compile(words(term), re.IGNORECASE)
    paths = [path for path in tracked_files("*.py", "*.md") if path not in {GLOSSARY, "tests/architecture/test_glossary.py"}]

    assert any(pattern.search(text_of(path)) for path in paths)


def test_public_names_are_made_of_terms_of_the_glossary() -> None:
    terms = [re.compile(rf"\b{words(term)}\b", re.IGNORECASE) for term, _ in glossary()]
    unknown = [
        name
        for name in public_names()
        if not any(term.search(spaced(name)) for term in terms) and not set(spaced(name).split()) <= WORDS_OF_THE_PLATFORM
    ]

    assert unknown == []
