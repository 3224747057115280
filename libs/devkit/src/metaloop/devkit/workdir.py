"""A run's temporary folder: removed when the run ends, or by the next run if this one was killed."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from metaloop.devkit import procfs

_PREFIX = "metaloop-"
_OWNER = "owner"


@contextmanager
def run_folder() -> Iterator[Path]:
    """An empty folder for this process alone, gone afterwards; what killed runs left behind is swept on the way."""
    sweep(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    (folder / _OWNER).write_text(_identity(os.getpid()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def private_folder(parent: Path, name: str) -> Path:
    """A new folder that no other user can look into, by its absolute path; `name-2` and so on where `name` is taken."""
    parent = parent.absolute()
    parent.mkdir(parents=True, exist_ok=True)
    for candidate in itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2))):
        with suppress(FileExistsError):
            (parent / candidate).mkdir(mode=0o700)
            return parent / candidate
    raise AssertionError("counting never ends")


def sweep(temp: Path) -> None:
    """Remove the folders of runs whose process is gone; a folder without an owner is not ours to judge."""
    for owner in temp.glob(f"{_PREFIX}*/{_OWNER}"):
        if not _is_alive(owner):
            shutil.rmtree(owner.parent, ignore_errors=True)


def _is_alive(owner: Path) -> bool:
    try:
        identity = owner.read_text()
    except OSError:
        return True
    pid = identity.partition(" ")[0]
    # Of a run in another container that shares the folder, we can't tell.
    is_elsewhere = not identity.endswith(_pid_namespace())
    return not pid.isdigit() or is_elsewhere or identity == _identity(int(pid))


def _identity(pid: int) -> str:
    """The pid with its start time, since pids are used again, and with the namespace that it is a pid in."""
    return f"{pid} {procfs.start_time(pid)} {_pid_namespace()}"


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink())
