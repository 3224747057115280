from pathlib import Path

import pytest

from metaloop.common.json import JsonValue, loads
from metaloop.common.server import Address
from metaloop.common.targets import target_file


def held(folder: Path) -> list[JsonValue]:
    return [loads(file.read_bytes()) for file in sorted(folder.iterdir())]


async def test_file_names_the_service_and_its_address_while_it_runs(tmp_path: Path):
    async with target_file(str(tmp_path), service="reconciler", address=Address("127.0.0.1", 4321)):
        assert held(tmp_path) == [[{"targets": ["127.0.0.1:4321"], "labels": {"service": "reconciler"}}]]

    assert held(tmp_path) == []


async def test_two_of_a_service_have_a_file_each(tmp_path: Path):
    async with (
        target_file(str(tmp_path), service="reconciler", address=Address("127.0.0.1", 1)),
        target_file(str(tmp_path), service="reconciler", address=Address("127.0.0.1", 2)),
    ):
        assert len(held(tmp_path)) == 2


async def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)

    async with target_file("", service="watcher", address=Address("127.0.0.1", 1)):
        assert held(tmp_path) == []


async def test_a_folder_that_is_not_there_ends_the_start(tmp_path: Path):
    with pytest.raises(OSError, match="nowhere"):
        async with target_file(str(tmp_path / "nowhere"), service="watcher", address=Address("127.0.0.1", 1)):
            pytest.fail("it started")
