"""`metaloop demo`: an example's story on a real cluster, told while it happens."""

from metaloop.devkit.demo.tales import TALES
from metaloop.devkit.demo.telling import play, tell

__all__ = ["TALES", "play", "tell"]
