"""A MapController of Hellos over caches in hand: what it marks, and what a claim of it shows."""

from collections.abc import Mapping

from metaloop.common.api.map import parse_map
from metaloop.common.faults import Fault
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject, JsonValue, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.report import SyncReport
from metaloop.watcher.core.health import ControllerStats
from metaloop.watcher.core.record import Record, record_of

from .objects import CONFIGMAPS, HELLOS, obj, owned_by, record, served
from .routing_in_hand import RoutingInHand

PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True)
WIDE = ResourceInfo(api_version="ex.io/v1", resource="wides", kind="Wide", namespaced=False, has_status=True)
KEY = "metaloop.dev/map-key"
BY = "metaloop.dev/map-controller"


def rule(info: ResourceInfo) -> JsonObject:
    """How a spec names a resource."""
    return {"apiVersion": info.api_version, "resource": info.resource}


def map_spec(parents: ResourceInfo = HELLOS, *, inputs: tuple[ResourceInfo, ...] = (PODS,), resync: int | None = None) -> JsonObject:
    """A MapController that maps inputs to ConfigMaps."""
    spec: JsonObject = {
        "parentResource": rule(parents),
        "inputResources": [rule(each) for each in inputs],
        "outputResources": [rule(CONFIGMAPS)],
        "hooks": {"map": {"webhook": {"url": "http://hook"}}},
        "resyncPeriodSeconds": resync,
    }
    return {"kind": "MapController", "metadata": {"name": "m", "uid": "m"}, "spec": spec}


class Mapped:
    """The watcher's side of a MapController: its parents, with Pods or others as inputs and ConfigMaps as outputs."""

    def __init__(self, parents: ResourceInfo = HELLOS, *, inputs: tuple[ResourceInfo, ...] = (PODS,), resync: int | None = None) -> None:
        self.parents = parents
        self.routing = RoutingInHand(*dict.fromkeys((parents, *inputs, CONFIGMAPS)))
        self.controller = parse_map(map_spec(parents, inputs=inputs, resync=resync))
        self.instance = served(self.controller, *dict.fromkeys((parents, *inputs, CONFIGMAPS)))
        self.version = 1

    def start(self) -> None:
        """Serve the controller."""
        self.routing.start(self.instance)

    # -- what happens --------------------------------------------------------------------------------------------------

    def see(self, info: ResourceInfo, name: str, **fields: object) -> Record:
        """An object is like this now."""
        self.version += 1
        made = record(name, version=self.version, **({"namespace": "n" if info.namespaced else ""} | fields))
        self.routing.see(info, made)
        return made

    def see_parent(self, name: str = "p", *, match: Mapping[str, str] | None = None, **fields: object) -> Record:
        """A parent is like this now. It selects what has these labels."""
        selector: JsonObject = {"matchLabels": {**match}} if match is not None else {}
        return self.see(self.parents, name, **({"spec": {"selector": selector}, "generation": self.version} | fields))

    def see_output(self, name: str, *, of: str, parent: str = "p", by: str = "m", ready: str = "", **fields: object) -> Record:
        """An output of an input with this UID is like this now."""
        namespace = "n" if self.parents.namespaced else ""
        owner = owned_by(parent, uid=f"uid-{namespace}-{parent}", kind=self.parents.kind, api_version=self.parents.api_version)
        self.version += 1
        metadata: dict[str, object] = {"annotations": {KEY: of, BY: by}, "ownerReferences": owner}
        made = output_record(name, version=self.version, ready=ready, **(metadata | fields))
        self.routing.see(CONFIGMAPS, made)
        return made

    def lose(self, info: ResourceInfo, gone: Record) -> None:
        """An object is gone."""
        self.routing.lose(info, gone)

    def report(self, part: str, fault: Fault | None = None, *, message: str = "", rivals: tuple[str, ...] = ()) -> None:
        """The sync of a part ended."""
        result = "retry" if fault is not None else "done"
        self.routing.router.record_report(
            SyncReport(key=self.key(part), lease="", result=result, fault=fault, message=message, rivals=rivals)
        )

    # -- what follows --------------------------------------------------------------------------------------------------

    def key(self, part: str = "", *, parent: str = "p") -> JobKey:
        """The key of a part of a parent, or of the parent."""
        return JobKey(self.controller.id, self.parents.id, "n" if self.parents.namespaced else "", parent, part)

    def marked(self) -> set[str]:
        """The marked units of work as `parent/part`; then nothing is marked. The parent itself has no part."""
        return {f"{key.name}/{key.part}" for key in self.routing.take_marks()}

    def marked_later(self) -> set[str]:
        """What is marked once the counts have settled."""
        self.routing.clock.advance(5.0)
        self.routing.queue.advance()
        return self.marked()

    def shown(self, part: str, *, parent: str = "p") -> tuple[list[str], list[str]]:
        """The names of the inputs and of the outputs that a claim of a part shows."""
        seen = self.routing.observe(self.key(part, parent=parent))
        return _names([raw for group in seen.inputs for raw in group.objects]), _names(
            [raw for each in seen.children for raw in each.objects]
        )

    def summary(self, *, parent: str = "p") -> JsonObject:
        """What a claim of a parent itself shows."""
        found = self.routing.observe(self.key(parent=parent)).summary
        assert found is not None
        return found

    @property
    def stats(self) -> ControllerStats:
        """What is known of the controller's health."""
        return self.routing.router.stats[self.controller.id]

    def failing(self) -> JsonObject:
        """What the parent's summary says of failing inputs."""
        return unstructured.child_object(self.summary(), "failing")


def output_record(name: str, *, version: int, ready: str = "", **fields: object) -> Record:
    """The record of an object with a condition Ready of this status, if one is given."""
    raw = obj(name, version=version, **fields)  # type: ignore[arg-type]
    conditions: list[JsonValue] = [{"type": "Ready", "status": ready}] if ready else []
    made = record_of({**raw, "status": {"conditions": conditions}})
    assert made is not None
    return made


def _names(raws: list[bytes]) -> list[str]:
    return sorted(unstructured.name(loads(raw)) for raw in raws)
