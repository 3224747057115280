"""`python -m metaloop.hookgateway`: read settings, run the app, exit with its status."""

import os
import sys
from functools import partial

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.hookgateway.app import build
from metaloop.hookgateway.settings import Settings


def main() -> int:
    """The exit status of this process's whole life."""
    # uvloop looks names up in libuv's threads. With its four, four names whose servers do not answer would hold up everybody else's.
    os.environ.setdefault("UV_THREADPOOL_SIZE", "64")
    settings = load_settings(Settings, sys.argv[1:])
    return run_service("hookgateway", settings, partial(build, settings=settings))


if __name__ == "__main__":
    sys.exit(main())
