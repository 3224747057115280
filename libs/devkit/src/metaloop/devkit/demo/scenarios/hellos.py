"""Snapshots of the first example: each Hello with its children, the greetings."""

from collections.abc import Sequence
from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.demo.environment import Environment
from metaloop.devkit.demo.snapshot import Row
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

HELLOS = ResourceInfo(api_version="example.com/v1", resource="hellos", kind="Hello", namespaced=True, has_status=True)
LANGUAGES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """One child."""

    name: str
    uid: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """One parent with the children that it owns."""

    name: str
    who: str
    counted: int
    """The number of greetings in its status."""
    greetings: tuple[Greeting, ...]

    @property
    def right(self) -> int:
        """How many greetings greet the right person."""
        return sum(greeting.text.endswith(f", {self.who}!") for greeting in self.greetings)

    @property
    def is_converged(self) -> bool:
        """Whether children and status are what the hook wants."""
        return self.right == self.counted == len(self.greetings) == LANGUAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Hellos:
    """All parents, and the number of all children, including orphans."""

    hellos: tuple[Hello, ...]
    children: int
    columns: tuple[str, ...] = ("parent", "greets", "children", "status")

    @property
    def converged(self) -> int:
        """How many parents have converged."""
        return sum(hello.is_converged for hello in self.hellos)

    @property
    def is_converged(self) -> bool:
        """Whether all parents have converged."""
        return self.converged == len(self.hellos)

    @property
    def counts(self) -> str:
        """The number of parents and children."""
        if self.is_converged:
            return f"{len(self.hellos)} parents, {self.children} children, all converged"
        return f"{self.converged} of {len(self.hellos)} parents converged, {self.children} children"

    @property
    def rows(self) -> Sequence[Row]:
        """A row for each parent."""
        return [_row(hello) for hello in self.hellos]

    def hello(self, name: str) -> Hello:
        """One of the parents."""
        return next(hello for hello in self.hellos if hello.name == name)


async def take_snapshot(environment: Environment) -> Hellos:
    """The present Hellos and greetings, in two requests."""
    parents = await environment.cluster.list(HELLOS, environment.namespace)
    children = await environment.cluster.list(CONFIG_MAPS, environment.namespace, labels="language")
    hellos = (_hello(parent, children) for parent in parents)
    return Hellos(hellos=tuple(sorted(hellos, key=lambda hello: hello.name)), children=len(children))


def _hello(parent: JsonObject, children: list[JsonObject]) -> Hello:
    uid = unstructured.uid(parent)
    return Hello(
        name=unstructured.name(parent),
        who=unstructured.text(unstructured.child_object(parent, "spec"), "who"),
        counted=unstructured.integer(unstructured.child_object(parent, "status"), "greetings"),
        greetings=tuple(_greeting(child) for child in children if (owner := controller_ref(child)) and owner.uid == uid),
    )


def _greeting(child: JsonObject) -> Greeting:
    text = unstructured.text(unstructured.child_object(child, "data"), "greeting")
    return Greeting(name=unstructured.name(child), uid=unstructured.uid(child), text=text)


def _row(hello: Hello) -> Row:
    return Row(cells=(hello.name, hello.who, _marks(hello), str(hello.counted)), is_right=hello.is_converged)


def _marks(hello: Hello) -> str:
    """A mark for each child: right, not yet right, or missing."""
    there = min(len(hello.greetings), LANGUAGES)
    return "●" * hello.right + "◐" * (there - hello.right) + "○" * (LANGUAGES - there)
