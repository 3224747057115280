"""`python -m metaloop.reconciler`: read settings, run the app, exit with its status."""

import sys

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.reconciler.app import build_from
from metaloop.reconciler.settings import Settings


def main() -> int:
    """Runs the service until it is told to stop, and returns its exit status."""
    settings = load_settings(Settings, sys.argv[1:])
    return run_service("reconciler", settings, build_from(settings))


if __name__ == "__main__":
    sys.exit(main())
