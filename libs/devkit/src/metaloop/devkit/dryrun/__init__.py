"""Plans what a sync would do to a live parent, using the watcher's view and the reconciler's syncs. It never writes."""

from metaloop.devkit.dryrun.driver import DryRun, Reads, dry_run, running_schemas
from metaloop.devkit.dryrun.snapshot import ClusterSnapshot

__all__ = ["ClusterSnapshot", "DryRun", "Reads", "dry_run", "running_schemas"]
