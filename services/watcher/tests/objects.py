"""Objects and controllers for the watcher's tests: each says only what its test is about."""

from collections.abc import Iterable, Mapping

from metaloop.common.api.composite import CompositeController, parse_composite
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.instance import Controller, Instance
from metaloop.watcher.core.record import Record, record_of
from metaloop.watcher.core.watch import Watch
from metaloop.watcher.core.watchset import instance_of

HELLOS = ResourceInfo(api_version="ex.io/v1", resource="hellos", kind="Hello", namespaced=True, has_status=True)
CONFIGMAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)


def obj(
    name: str, *, namespace: str = "n", uid: str = "", version: int = 1, labels: dict[str, str] | None = None, **more: object
) -> JsonObject:
    """An object; `more` are further fields of its metadata, and `spec` one of its own."""
    spec = more.pop("spec", None)
    metadata = {"name": name, "namespace": namespace, "uid": uid or f"uid-{namespace}-{name}", "resourceVersion": str(version), **more}
    if labels is not None:
        metadata["labels"] = labels
    return {"metadata": metadata, **({"spec": spec} if spec is not None else {})}  # type: ignore[dict-item]


def record(name: str, **fields: object) -> Record:
    """The record of `obj(...)`."""
    made = record_of(obj(name, **fields))  # type: ignore[arg-type]
    assert made is not None
    return made


def owned_by(parent: str, *, uid: str = "", kind: str = "Hello", api_version: str = "ex.io/v1") -> list[JsonObject]:
    """The ownerReferences of a child of `parent`, a neighbour in namespace `n`."""
    return [{"apiVersion": api_version, "kind": kind, "name": parent, "uid": uid or f"uid-n-{parent}", "controller": True}]


def controller(
    *, generate_selector: bool = False, ignore_status_changes: bool = False, match: dict[str, str] | None = None
) -> CompositeController:
    """A controller of Hellos with ConfigMaps as children."""
    selector: JsonObject = {"labelSelector": {"matchLabels": dict(match)}} if match else {}
    return parse_composite(
        {
            "metadata": {"name": "hello", "uid": "cc"},
            "spec": {
                "parentResource": {
                    "apiVersion": "ex.io/v1",
                    "resource": "hellos",
                    "ignoreStatusChanges": ignore_status_changes,
                    **selector,
                },
                "childResources": [{"apiVersion": "v1", "resource": "configmaps"}],
                "hooks": {"sync": {"webhook": {"url": "http://hook"}}},
                "generateSelector": generate_selector,
            },
        }
    )


def instance(*, parents: ResourceInfo = HELLOS, **options: object) -> Instance:
    """An instance of `controller(...)`."""
    return served(controller(**options), parents, CONFIGMAPS)  # type: ignore[arg-type]


def served(controller: Controller, *resources: ResourceInfo) -> Instance:
    """The instance of a controller where the API server serves these resources."""
    found = instance_of(controller, {info.id: info for info in resources})
    assert isinstance(found, Instance), found
    return found


def change(resource: ResourceInfo, old: Record | None, new: Record | None) -> Change:
    """What happened to one object."""
    known = new or old
    assert known is not None
    return Change(Watch(resource), known.key, old, new)


def caches_of(watched: Mapping[ResourceInfo, Iterable[Record]]) -> Caches:
    """Synced caches of these resources, with these objects."""
    caches = Caches()
    for resource, records in watched.items():
        cache = caches.open(Watch(resource), now=0.0)
        cache.begin_list()
        for each in records:
            cache.put(each)
        cache.end_list("1")
    return caches
