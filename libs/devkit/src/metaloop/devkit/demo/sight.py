"""What the cluster holds of the example now: each Hello with the greetings that are its children."""

from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, Cluster

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
    """One parent, and the children that it owns."""

    name: str
    who: str
    counted: int
    """How many greetings its status counts."""
    greetings: tuple[Greeting, ...]

    @property
    def right(self) -> int:
        """How many greetings greet whom they should."""
        return sum(greeting.text.endswith(f", {self.who}!") for greeting in self.greetings)

    @property
    def is_converged(self) -> bool:
        """Whether children and status are what the hook asks for."""
        return self.right == self.counted == len(self.greetings) == LANGUAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """All parents by name, and how many children there are, orphans included."""

    hellos: tuple[Hello, ...]
    children: int

    @property
    def converged(self) -> int:
        """How many parents are as they should be."""
        return sum(hello.is_converged for hello in self.hellos)

    @property
    def is_converged(self) -> bool:
        """Whether all are."""
        return self.converged == len(self.hellos)

    def hello(self, name: str) -> Hello:
        """One of the parents."""
        return next(hello for hello in self.hellos if hello.name == name)


async def look(cluster: Cluster, namespace: str) -> Sight:
    """What is there now, in two requests."""
    parents = await cluster.list(HELLOS, namespace)
    children = await cluster.list(CONFIG_MAPS, namespace, labels="language")
    hellos = (_hello(parent, children) for parent in parents)
    return Sight(hellos=tuple(sorted(hellos, key=lambda hello: hello.name)), children=len(children))


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
