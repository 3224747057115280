"""Run a service whose wall clock is wrong by so many seconds, and set right and wrong again all the time:

python skewed.py SERVICE SECONDS
"""

import runpy
import sys
import time
from random import Random

from metaloop.common.machine import RealMachine, running_on

_SET_EVERY_SECONDS = 4.0


class SkewedMachine:
    """This machine, whose wall clock is set all the time."""

    def __init__(self, skew_seconds: float) -> None:
        self._skew_seconds = skew_seconds
        self.random = Random()
        self.monotonic = RealMachine.monotonic
        self.boot_time = RealMachine.boot_time

    def wall_time(self) -> float:
        """The time, or the time with the skew."""
        is_wrong = int(time.monotonic() / _SET_EVERY_SECONDS) % 2
        return time.time() + is_wrong * self._skew_seconds


def main() -> None:
    """Run the service as `python -m metaloop.SERVICE` does."""
    service, seconds = sys.argv[1], float(sys.argv[2])
    sys.argv[1:] = []
    with running_on(SkewedMachine(seconds)):
        runpy.run_module(f"metaloop.{service}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
