"""`metaloop demo`: plays the scenario of an example on a real cluster, and shows what happens."""

from metaloop.devkit.demo.runner import play, run_demo
from metaloop.devkit.demo.scenarios import SCENARIOS

__all__ = ["SCENARIOS", "play", "run_demo"]
