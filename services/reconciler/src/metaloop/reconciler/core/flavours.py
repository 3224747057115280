"""Which kinds of controllers are served."""

from collections.abc import Mapping
from typing import Final

from metaloop.common.api import composite, decorator
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.composite import COMPOSITE
from metaloop.reconciler.core.decorator import DECORATOR
from metaloop.reconciler.core.flavour import Flavour
from metaloop.reconciler.core.model import Controller

FLAVOURS: Final[Mapping[str, Flavour]] = {composite.KIND: COMPOSITE, decorator.KIND: DECORATOR}


def flavour_of(controller: ControllerId) -> Flavour:
    """How a controller is served. Raises InvalidSpec for a kind that nobody serves."""
    flavour = FLAVOURS.get(controller.kind)
    if flavour is None:
        raise InvalidSpec("kind", f"{controller.kind} is no kind of controller")
    return flavour


def parse_controller(raw: JsonObject) -> Controller:
    """The controller of a raw object. Raises InvalidSpec that names the first field at fault."""
    return flavour_of(ControllerId(unstructured.kind(raw), unstructured.name(raw))).parse(raw)
