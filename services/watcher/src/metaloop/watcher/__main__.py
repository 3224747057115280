"""`python -m metaloop.watcher`: read the settings and run the service."""

import sys
from functools import partial

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.watcher.app import build
from metaloop.watcher.settings import WatcherSettings


def main() -> None:
    """Run the service until it is stopped. Exit status: 0 after a signal, 1 after a failure, 2 for invalid settings."""
    settings = load_settings(WatcherSettings, sys.argv[1:])
    run_service("watcher", settings, partial(build, settings=settings))


if __name__ == "__main__":
    main()
