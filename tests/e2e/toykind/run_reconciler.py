"""The reconciler, with the toy kind in its registries."""

import sys

from mirror_spec import MIRROR_KIND
from mirror_sync import sync_mirror

from metaloop.common.api.kinds import KINDS, by_name
from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.reconciler.app import build_from
from metaloop.reconciler.core.kinds.registry import SYNCS
from metaloop.reconciler.settings import Settings

if __name__ == "__main__":
    settings = load_settings(Settings, sys.argv[1:])
    kinds, syncs = by_name(*KINDS.values(), MIRROR_KIND), {**SYNCS, MIRROR_KIND.name: sync_mirror}
    sys.exit(run_service("reconciler", settings, build_from(settings, kinds=kinds, syncs=syncs)))
