"""Maps each kind of controller to its sync. This is the only module of the reconciler that lists the kinds."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from metaloop.common.api import composite, decorator
from metaloop.common.api.component import KIND as COMPONENT_KIND
from metaloop.common.api.map import KIND as MAP_KIND
from metaloop.reconciler.core.component.preview import Preview
from metaloop.reconciler.core.kinds.component import sync_component
from metaloop.reconciler.core.kinds.component_plan import preview_component
from metaloop.reconciler.core.kinds.composite import SYNC as COMPOSITE_SYNC
from metaloop.reconciler.core.kinds.decorator import SYNC as DECORATOR_SYNC
from metaloop.reconciler.core.kinds.map import sync_map
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.steps import Steps

Sync: TypeAlias = Callable[[Observed, datetime], Steps[None]]
"""Starts the sync of one parent, given what was observed of it and the present time."""
Syncs: TypeAlias = Mapping[str, Sync]
"""Syncs by the name of the controller's kind."""

SYNCS: Final[Syncs] = {composite.KIND: COMPOSITE_SYNC, decorator.KIND: DECORATOR_SYNC, MAP_KIND: sync_map, COMPONENT_KIND: sync_component}

PREVIEWS: Final[Mapping[str, Callable[[Observed, datetime], Steps[Preview]]]] = {COMPONENT_KIND: preview_component}
"""What a plan shows of kinds whose parents take several syncs, by the name of the controller's kind."""
