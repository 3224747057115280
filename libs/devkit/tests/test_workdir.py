"""Temporary folders of runs, including those of killed runs."""

import os
import subprocess
import sys
from pathlib import Path

from metaloop.devkit.workdir import private_folder, run_folder, sweep

KILLED_RUN = """
import os, signal
from metaloop.devkit.workdir import run_folder
with run_folder() as folder:
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_folder_is_removed_after_the_run() -> None:
    with run_folder() as folder:
        (folder / "data").write_text("x")

    assert not folder.exists()


def test_the_folder_of_a_killed_run_is_removed_by_the_next(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", KILLED_RUN], env=environment, capture_output=True, text=True, check=False)
    left_behind = Path(result.stdout.strip())
    assert left_behind.exists()

    sweep(tmp_path)

    assert not left_behind.exists()


def test_the_folder_of_a_live_run_is_left_alone() -> None:
    with run_folder() as folder:
        sweep(folder.parent)

        assert folder.exists()


def test_a_folder_without_a_lock_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "metaloop-of-someone"
    folder.mkdir()

    sweep(tmp_path)

    assert folder.exists()


def test_a_private_folder_is_new_and_unreadable_for_other_users(tmp_path: Path) -> None:
    first, second = private_folder(tmp_path, "services"), private_folder(tmp_path, "services")

    assert (first.name, second.name) == ("services", "services-2")
    assert first.stat().st_mode & 0o077 == 0
