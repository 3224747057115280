"""Which kinds of controllers are served."""

from collections.abc import Mapping
from typing import Final

from metaloop.common.api import composite, decorator
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.reconciler.core.composite import COMPOSITE
from metaloop.reconciler.core.decorator import DECORATOR
from metaloop.reconciler.core.flavour import Flavour

FLAVOURS: Final[Mapping[str, Flavour]] = {composite.KIND: COMPOSITE, decorator.KIND: DECORATOR}


def flavour_of(controller: ControllerId) -> Flavour:
    """How a controller is served. Raises InvalidSpec for a kind that nobody serves."""
    flavour = FLAVOURS.get(controller.kind)
    if flavour is None:
        raise InvalidSpec("kind", f"{controller.kind} is no kind of controller")
    return flavour
