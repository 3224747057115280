"""`python -m metaloop.watcher`: read settings, run the app, exit with its status."""

import sys
from functools import partial

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.watcher.app import build
from metaloop.watcher.settings import WatcherSettings


def main() -> int:
    """The exit status of the watcher's whole life."""
    settings = load_settings(WatcherSettings, sys.argv[1:])
    return run_service("watcher", settings, partial(build, settings=settings))


if __name__ == "__main__":
    sys.exit(main())
