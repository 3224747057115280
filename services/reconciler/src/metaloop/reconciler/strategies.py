"""How the children of each controller are written: as its annotation says, else as the setting says for all."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from metaloop.common.api import APPLY_STRATEGY_ANNOTATION
from metaloop.common.errors import InvalidSpec
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.schema import Schema, guessed_schema
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.children.dynamic_apply import DynamicApply
from metaloop.reconciler.core.children.server_side_apply import ServerSideApply
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.settings import DYNAMIC_APPLY, SERVER_SIDE_APPLY


class SchemaProvider(Protocol):
    """What is known of the kinds of children."""

    def of(self, info: ResourceInfo) -> Schema:
        """What is known of a kind now."""
        ...

    async def wait_for(self, infos: Iterable[ResourceInfo]) -> None:
        """Returns when it is known what can be known of these kinds, or soon in any case."""
        ...


class GuessedSchemas:
    """Nothing but guesses."""

    def of(self, info: ResourceInfo) -> Schema:
        """A guess."""
        return guessed_schema(info)

    async def wait_for(self, infos: Iterable[ResourceInfo]) -> None:
        """Returns at once: there is nothing to wait for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategies:
    """Chooses the apply strategy of each sync."""

    schemas: SchemaProvider = field(default_factory=GuessedSchemas)
    default: str = DYNAMIC_APPLY

    async def of(self, observed: Observed) -> ApplyStrategy:
        """How this parent's children are written, with what is known of their kinds. Raises InvalidSpec for a strategy that there isn't."""
        await self.schemas.wait_for([group.info for group in observed.groups])
        annotated = unstructured.annotations(observed.controller.raw).get(APPLY_STRATEGY_ANNOTATION)
        match annotated or self.default:
            case "dynamic-apply":
                return DynamicApply(schemas=self.schemas.of, managed=observed.managed)
            case "server-side-apply":
                return ServerSideApply(schemas=self.schemas.of, managed=observed.managed)
            case other:
                field = f"metadata.annotations[{APPLY_STRATEGY_ANNOTATION}]"
                raise InvalidSpec(field, f"must be {DYNAMIC_APPLY} or {SERVER_SIDE_APPLY}, and is {other!r}")
