"""Plans what a sync would do to a live parent, with the watcher's view and the reconciler's pipeline. It never writes."""

from metaloop.devkit.dryrun.driver import DryRun, dry_run
from metaloop.devkit.dryrun.world import World

__all__ = ["DryRun", "World", "dry_run"]
