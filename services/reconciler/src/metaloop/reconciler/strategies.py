"""Chooses how the children of a controller are written: as its annotation says, or else as the settings say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from metaloop.common.api import APPLY_STRATEGY_ANNOTATION
from metaloop.common.errors import InvalidSpec
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.schema import Schema
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.children.dynamic_apply import DynamicApply
from metaloop.reconciler.core.children.server_side_apply import ServerSideApply
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.settings import DYNAMIC_APPLY, SERVER_SIDE_APPLY

_STRATEGIES: Final[Mapping[str, type[DynamicApply | ServerSideApply]]] = {
    DYNAMIC_APPLY: DynamicApply,
    SERVER_SIDE_APPLY: ServerSideApply,
}


class SchemaProvider(Protocol):
    """Provides the schemas of the children's kinds."""

    def of(self, info: ResourceInfo) -> Schema:
        """The schema of a kind, as far as it is known now."""
        ...

    async def wait_for(self, infos: Iterable[ResourceInfo]) -> None:
        """Returns when the schemas of these kinds are known as far as they can be, or after a short time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategies:
    """Chooses the apply strategy of each sync."""

    schemas: SchemaProvider
    default: str

    async def of(self, observed: Observed) -> ApplyStrategy:
        """The strategy for this parent's children. Raises InvalidSpec for an unknown strategy."""
        await self.schemas.wait_for([group.info for group in observed.groups])
        annotated = unstructured.annotations(observed.controller.raw).get(APPLY_STRATEGY_ANNOTATION)
        name = annotated or self.default
        strategy = _STRATEGIES.get(name)
        if strategy is None:
            field = f"metadata.annotations[{APPLY_STRATEGY_ANNOTATION}]"
            raise InvalidSpec(field, f"must be {' or '.join(_STRATEGIES)}, not {name!r}")
        return strategy(schemas=self.schemas.of, managed_fields=observed.managed_fields)
