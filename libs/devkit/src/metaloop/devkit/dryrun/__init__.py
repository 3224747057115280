"""Plans what a sync would do to a live parent: the watcher's view of it and the reconciler's pipeline, with nobody there who could write."""

from metaloop.devkit.dryrun.rehearsal import Rehearsal, rehearse
from metaloop.devkit.dryrun.world import World

__all__ = ["Rehearsal", "World", "rehearse"]
