"""`python -m metaloop.hookgateway`: read settings, run the app, exit with its status."""

import os

# Names are resolved in libuv's threads. With its default of four, four names whose servers do not answer would stop all others.
os.environ.setdefault("UV_THREADPOOL_SIZE", "64")

import uvloop

from metaloop.hookgateway.app import run
from metaloop.hookgateway.settings import Settings


def main() -> None:
    """Run the service until it is told to stop."""
    uvloop.run(run(Settings()))


if __name__ == "__main__":
    main()
