"""`python -m metaloop.hookgateway`: read the settings and run the service."""

import os
import sys
from functools import partial

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.hookgateway.app import build
from metaloop.hookgateway.settings import Settings


def main() -> None:
    """Run the service until it is stopped. Exit status: 0 after a signal, 1 after a failure, 2 for invalid settings."""
    # uvloop resolves names in libuv's threads. There are four by default: four names whose servers do not answer would
    # block all others.
    os.environ.setdefault("UV_THREADPOOL_SIZE", "64")
    settings = load_settings(Settings, sys.argv[1:])
    run_service("hookgateway", settings, partial(build, settings=settings))


if __name__ == "__main__":
    main()
