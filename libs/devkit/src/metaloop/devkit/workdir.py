"""A run's temporary folder: removed when the run ends, or by the next run if this one was killed."""

import fcntl
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "metaloop-"
_LOCK = "lock"
_NEW_LOCK = ".lock"


@contextmanager
def run_folder() -> Iterator[Path]:
    """An empty folder for this process alone, removed afterwards.

    Folders that killed runs left behind are removed as well.
    """
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / _NEW_LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Only now, so that nobody sees the file before it is locked. The kernel frees the lock when this process
            # ends.
            (folder / _NEW_LOCK).rename(folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def private_folder(parent: Path, name: str) -> Path:
    """A new folder that no other user can read, by its absolute path; `name-2` and so on where `name` is taken."""
    parent = parent.absolute()
    parent.mkdir(parents=True, exist_ok=True)
    for candidate in itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2))):
        with suppress(FileExistsError):
            (parent / candidate).mkdir(mode=0o700)
            return parent / candidate
    raise AssertionError("counting never ends")


def sweep(temp: Path) -> None:
    """Remove the folders of runs whose process is gone; a folder without a lock file is not ours, and stays."""
    for lock in temp.glob(f"{_PREFIX}*/{_LOCK}"):
        if not _is_held(lock):
            shutil.rmtree(lock.parent, ignore_errors=True)


def _is_held(lock: Path) -> bool:
    try:
        with lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, removed meanwhile, or another user's
        return True
    return False
