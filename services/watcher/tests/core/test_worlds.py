"""The watcher serves exactly the kinds that there are."""

from metaloop.common.api.kinds import KINDS
from metaloop.watcher.core.kinds.registry import WORLDS


def test_every_kind_has_its_world():
    assert {name: world.kind for name, world in WORLDS.items()} == dict(KINDS)
