"""What every kind of controller declares: its parents, their children, and its hooks."""

from dataclasses import dataclass, field
from typing import ClassVar

from orjson import Fragment

from metaloop.common.api.hook import Hooks
from metaloop.common.api.rules import ChildRule
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject, dumps, is_object
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import EVERYTHING, Labels, Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentRule:
    """The parents of one resource: the objects that both selectors match."""

    resource: ResourceId
    labels: Selector = EVERYTHING
    annotations: Selector = EVERYTHING
    ignore_status_changes: bool = False

    def selects(self, *, labels: Labels, annotations: Labels) -> bool:
        """Whether an object with these labels and annotations is a parent."""
        return self.labels.matches(labels) and self.annotations.matches(annotations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A controller that can be served. Each kind is a subclass, in a module of its own."""

    kind: ClassVar[str]
    subscribes: ClassVar[bool] = False
    """Whether its parents are subscribed to objects, even if it has no customize hook."""

    reads_written: ClassVar[bool] = False
    """Whether a sync looks at the objects that it has written, and not only at their versions."""

    raw: JsonObject
    """The complete object, which hooks get."""
    name: str
    uid: str
    generation: int
    resource_version: str
    parents: tuple[ParentRule, ...]
    """At least one; each resource at most once."""
    children: tuple[ChildRule, ...]
    hooks: Hooks
    endpoint_configs: tuple[JsonObject, ...]
    resync_period_seconds: float | None
    shown: Fragment = field(init=False, repr=False, compare=False)
    """`raw` as JSON for the requests of hooks, serialized once for each version of a controller."""

    def __post_init__(self) -> None:
        """Serialize the object."""
        object.__setattr__(self, "shown", Fragment(dumps(self.raw)))

    @property
    def id(self) -> ControllerId:
        """The controller's name on the bus."""
        return ControllerId(self.kind, self.name)

    @property
    def finalizer(self) -> str:
        """The finalizer that it puts on its parents."""
        return finalizer_of(self.id)

    @property
    def impersonated(self) -> tuple[str, ...]:
        """The service accounts, in the namespaces of its parents, that it acts as by default."""
        return ()

    @property
    def watched(self) -> str:
        """The label selector within which the objects are watched that it writes; empty if all objects are."""
        return ""

    def parent_rule(self, resource: ResourceId) -> ParentRule | None:
        """The rule for objects of a resource, in any version; None if they are not parents."""
        named = (resource.group, resource.resource)
        return next((rule for rule in self.parents if (rule.resource.group, rule.resource.resource) == named), None)


def finalizer_of(controller: ControllerId) -> str:
    """The finalizer that a controller puts on its parents, where its kind has none of its own."""
    return f"metacontroller.io/{controller.kind.lower()}-{controller.name}"


def spec_of(raw: JsonObject) -> JsonObject:
    """The spec of a controller. Raises InvalidSpec if it is missing."""
    spec = raw.get("spec")
    if spec is None:
        raise InvalidSpec("spec", "is missing")
    if not is_object(spec):
        raise InvalidSpec("spec", "must be an object")
    return spec
