"""Which kinds of controllers are synced, and how: the only module that names them all."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from metaloop.common.api import composite, decorator
from metaloop.reconciler.core.kinds.composite import SYNC as COMPOSITE_SYNC
from metaloop.reconciler.core.kinds.decorator import SYNC as DECORATOR_SYNC
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.steps import Steps

Sync: TypeAlias = Callable[[Observed, datetime], Steps[None]]
"""From what was observed of one parent, and the present time, to what is to be done, step by step."""
Syncs: TypeAlias = Mapping[str, Sync]
"""By the name of the controller's kind."""

SYNCS: Final[Syncs] = {composite.KIND: COMPOSITE_SYNC, decorator.KIND: DECORATOR_SYNC}
