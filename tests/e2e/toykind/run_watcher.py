"""The watcher, with the toy kind in its registry."""

import sys
from functools import partial

from mirror_world import MIRROR_WORLD

from metaloop.common.service import run_service
from metaloop.common.settings import load_settings
from metaloop.watcher.app import build
from metaloop.watcher.core.kinds.registry import WORLDS
from metaloop.watcher.core.kinds.world import by_kind
from metaloop.watcher.settings import WatcherSettings

if __name__ == "__main__":
    settings = load_settings(WatcherSettings, sys.argv[1:])
    worlds = by_kind(*WORLDS.values(), MIRROR_WORLD)
    sys.exit(run_service("watcher", settings, partial(build, settings=settings, worlds=worlds)))
