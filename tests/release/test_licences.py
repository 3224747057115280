from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from release.licences import Licensed, licence_of, licences_in, table_of

LONG_TEXT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software"


def installed(site: Path, name: str, *lines: str) -> PathDistribution:
    folder = site / f"{name}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, "", ""]))
    return PathDistribution(folder)


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: MIT", "License: BSD"], "MIT"),
        (["License: whole text", "Classifier: License :: OSI Approved :: BSD License"], "BSD License"),
        (
            ["Classifier: License :: OSI Approved :: MIT License", "Classifier: License :: OSI Approved :: Apache Software License"],
            "MIT License and Apache Software License",
        ),
        (["License: Apache 2.0"], "Apache 2.0"),
        ([f"License: {LONG_TEXT}"], ""),
        ([], ""),
    ],
)
def test_licence_is_what_the_authors_state_most_precisely(tmp_path: Path, lines: list[str], licence: str):
    assert licence_of(installed(tmp_path, "some", *lines).metadata) == licence


def test_distributions_of_a_folder_are_listed_by_name(tmp_path: Path):
    installed(tmp_path, "zebra", "License-Expression: MIT")
    installed(tmp_path, "Ant", "License-Expression: ISC")

    assert licences_in(tmp_path) == [
        Licensed(name="Ant", version="1.0", licence="ISC"),
        Licensed(name="zebra", version="1.0", licence="MIT"),
    ]


def test_table_says_where_no_licence_is_stated():
    table = table_of([Licensed(name="some", version="2.1", licence="")])

    assert table.splitlines()[-1] == "| some | 2.1 | not stated |"
