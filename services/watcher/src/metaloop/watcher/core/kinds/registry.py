"""The kinds of controllers that the watcher serves."""

from typing import Final

from metaloop.watcher.core.kinds.component import COMPONENT
from metaloop.watcher.core.kinds.composite import COMPOSITE
from metaloop.watcher.core.kinds.decorator import DECORATOR
from metaloop.watcher.core.kinds.map import MAP
from metaloop.watcher.core.kinds.world import by_kind

WORLDS: Final = by_kind(COMPOSITE, DECORATOR, MAP, COMPONENT)
