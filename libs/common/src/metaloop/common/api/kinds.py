"""The kinds of controllers. Everything that needs "all kinds" reads this table.

To add a kind, add a module that parses it, an entry here, its world in the watcher and its sync in the reconciler: see
"Add a kind of controller" in docs/architecture.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from metaloop.common.api import API_VERSION, composite, decorator
from metaloop.common.api.component import API_VERSION as OUR_API_VERSION
from metaloop.common.api.component import KIND as COMPONENT_KIND
from metaloop.common.api.component import parse_component
from metaloop.common.api.controller import Controller
from metaloop.common.api.map import KIND as MAP_KIND
from metaloop.common.api.map import parse_map
from metaloop.common.api.rules import ALL_METHODS, PLAIN_METHODS, UpdateMethod
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerKind:
    """One kind of controller: its resource, its short names for kubectl, and its parser."""

    resource: ResourceInfo
    """The resource of the controller objects."""
    short_names: tuple[str, ...]
    parse: Callable[[JsonObject], Controller]
    """The controller in a raw object. Raises InvalidSpec with the first invalid field."""
    update_methods: tuple[UpdateMethod, ...] = ALL_METHODS
    """How its controllers may update children; empty where policies say that."""
    names_finalizer: bool = False
    """Whether each controller says itself what its finalizer is called."""
    is_optional: bool = False
    """Whether a cluster may lack its resource, as one does where only Metacontroller's own kinds are installed."""

    @property
    def name(self) -> str:
        """The name of the kind, as in `kind: CompositeController`."""
        return self.resource.kind


Kinds: TypeAlias = Mapping[str, ControllerKind]
"""Kinds of controllers by name."""


def by_name(*kinds: ControllerKind) -> Kinds:
    """The kinds by name, in the given order."""
    return {kind.name: kind for kind in kinds}


KINDS: Final = by_name(
    ControllerKind(
        resource=ResourceInfo(
            api_version=API_VERSION, resource="compositecontrollers", kind=composite.KIND, namespaced=False, has_status=True
        ),
        short_names=("cc", "cctl"),
        parse=composite.parse_composite,
    ),
    ControllerKind(
        resource=ResourceInfo(
            api_version=API_VERSION, resource="decoratorcontrollers", kind=decorator.KIND, namespaced=False, has_status=True
        ),
        short_names=("dec", "decorators"),
        parse=decorator.parse_decorator,
    ),
    ControllerKind(
        resource=ResourceInfo(api_version=API_VERSION, resource="mapcontrollers", kind=MAP_KIND, namespaced=False, has_status=True),
        short_names=("maps", "mapctl"),
        parse=parse_map,
        update_methods=PLAIN_METHODS,
        is_optional=True,
    ),
    ControllerKind(
        resource=ResourceInfo(
            api_version=OUR_API_VERSION, resource="componentcontrollers", kind=COMPONENT_KIND, namespaced=False, has_status=True
        ),
        short_names=("components", "compctl"),
        parse=parse_component,
        update_methods=(),
        names_finalizer=True,
        is_optional=True,
    ),
)


def named(name: str, *, kinds: Kinds = KINDS) -> str:
    """How a controller of this name may be called, as in `CompositeController/NAME or DecoratorController/NAME`."""
    return " or ".join(f"{kind}/{name}" for kind in kinds)


def parse_controller(raw: JsonObject, *, kinds: Kinds = KINDS) -> Controller:
    """The controller in a raw object of any of these kinds. Raises InvalidSpec with the first invalid field."""
    kind = kinds.get(unstructured.kind(raw))
    if kind is None:
        raise InvalidSpec("kind", f"{unstructured.kind(raw)} is not a kind of controller")
    return kind.parse(raw)
