"""Which kinds of controllers are served."""

from collections.abc import Mapping
from typing import Final

from metaloop.common.api import composite, decorator
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.reconciler.core.kinds.composite import COMPOSITE
from metaloop.reconciler.core.kinds.decorator import DECORATOR
from metaloop.reconciler.core.kinds.variant import Variant

VARIANTS: Final[Mapping[str, Variant]] = {composite.KIND: COMPOSITE, decorator.KIND: DECORATOR}


def variant_of(controller: ControllerId) -> Variant:
    """How a controller is served. Raises InvalidSpec for a kind that nobody serves."""
    variant = VARIANTS.get(controller.kind)
    if variant is None:
        raise InvalidSpec("kind", f"{controller.kind} is no kind of controller")
    return variant
