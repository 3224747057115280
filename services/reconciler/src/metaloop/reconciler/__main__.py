"""`python -m metaloop.reconciler` reads the settings and runs the service."""

import sys

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.reconciler.app import build_from
from metaloop.reconciler.settings import Settings


def main() -> None:
    """Run the service until it is stopped. Exit status: 0 after a signal, 1 after a failure, 2 for invalid settings."""
    settings = load_settings(Settings, sys.argv[1:])
    run_service("reconciler", settings, build_from(settings))


if __name__ == "__main__":
    main()
