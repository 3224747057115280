"""`python -m metaloop.reconciler` reads the settings and runs the service."""

import ctypes
import sys

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.reconciler.app import build_from
from metaloop.reconciler.settings import Settings

_M_ARENA_MAX = -8
"""glibc's name for the number of heaps."""


def main() -> None:
    """Run the service until it is stopped. Exit status: 0 after a signal, 1 after a failure, 2 for invalid settings."""
    _share_one_heap()
    settings = load_settings(Settings, sys.argv[1:])
    run_service("reconciler", settings, build_from(settings))


def _share_one_heap() -> None:
    """Have all threads allocate from one heap, where the C library has several.

    What the thread of large parents frees, hundreds of megabytes, would otherwise be kept for that thread alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


if __name__ == "__main__":
    main()
