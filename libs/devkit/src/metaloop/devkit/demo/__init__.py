"""`metaloop demo`: one story on a real cluster, told while it happens."""

from metaloop.devkit.demo.tale import tell_story

__all__ = ["tell_story"]
