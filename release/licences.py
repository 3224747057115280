"""The licences of what an image holds, read from the metadata of the installed distributions."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageMetadata, distributions
from pathlib import Path

_CLASSIFIER = "License :: OSI Approved :: "
_LONGEST_NAME = 60
"""The old field `License` may hold a name or the whole text; a name is shorter than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Licensed:
    """A distribution, and its licence as its authors state it; empty if they do not."""

    name: str
    version: str
    licence: str


def licences_in(site_packages: Path) -> list[Licensed]:
    """The distributions in a folder of site-packages, by name."""
    found = [_licensed(distribution) for distribution in distributions(path=[str(site_packages)])]
    return sorted(found, key=lambda licensed: licensed.name.lower())


def licence_of(metadata: PackageMetadata) -> str:
    """The licence that a distribution states: its expression, else its classifiers, else a short `License` field."""
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [text.removeprefix(_CLASSIFIER) for text in metadata.get_all("Classifier", []) if text.startswith(_CLASSIFIER)]
    if classifiers:
        return " and ".join(classifiers)
    stated = metadata["License"].strip() if "License" in metadata else ""
    return stated if len(stated) <= _LONGEST_NAME and "\n" not in stated else ""


def table_of(licensed: Iterable[Licensed]) -> str:
    """A Markdown table of distributions and their licences."""
    rows = [f"| {one.name} | {one.version} | {one.licence or 'not stated'} |" for one in licensed]
    return "\n".join(["| distribution | version | licence |", "|---|---|---|", *rows, ""])


def _licensed(distribution: Distribution) -> Licensed:
    return Licensed(name=distribution.name, version=distribution.version, licence=licence_of(distribution.metadata))
