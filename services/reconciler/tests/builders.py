"""Builders of a controller, a parent and its children. They are complete but for what a test is about."""

from metaloop.common.api.composite import child_selector, parse_composite
from metaloop.common.api.controller import Controller
from metaloop.common.api.decorator import parse_decorator
from metaloop.common.api.rules import UpdateMethod
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.owner import reference_to
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import Selector
from metaloop.common.observation import Granted, Observation, ObservedGroup
from metaloop.reconciler.core.apply.schema import guessed_schema
from metaloop.reconciler.core.children.dynamic_apply import DynamicApply
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed

PARENT_UID = "uid-of-parent"
LABELS: JsonObject = {"app": "mine"}

THINGS = ResourceInfo(api_version="example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
CLUSTER_THINGS = ResourceInfo(
    api_version="example.com/v1", resource="clusterthings", kind="ClusterThing", namespaced=False, has_status=True
)
CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
DEPLOYMENTS = ResourceInfo(api_version="apps/v1", resource="deployments", kind="Deployment", namespaced=True, has_status=True)
NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False, has_status=True)

DYNAMIC_APPLY = DynamicApply(schemas=guessed_schema, managed_fields={})
EMPTY_ANSWER = Answer(status=None, children=(), resync_after_seconds=None, finalized=False, labels={}, annotations={}, unknown_keys=())


def a_controller(
    *,
    parent: ResourceInfo = THINGS,
    children: tuple[ResourceInfo, ...] = (CONFIG_MAPS,),
    method: UpdateMethod = "InPlace",
    webhook: JsonValue = None,
    version: str = "v1",
    generate_selector: bool = False,
) -> JsonObject:
    """A CompositeController with a sync hook."""
    rules: list[JsonValue] = [
        {"apiVersion": info.api_version, "resource": info.resource, "updateStrategy": {"method": method}} for info in children
    ]
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "things", "uid": "uid-of-controller", "resourceVersion": "7"},
        "spec": {
            "parentResource": {"apiVersion": parent.api_version, "resource": parent.resource},
            "childResources": rules,
            "hooks": {"sync": {"version": version, "webhook": webhook or {"url": "http://hook.example/sync"}}},
            "generateSelector": generate_selector,
        },
    }


def a_decorator(*, children: tuple[ResourceInfo, ...] = (CONFIG_MAPS,), rule: JsonObject | None = None) -> JsonObject:
    """A DecoratorController of THINGS with a sync hook. `rule` is added to its only resource rule."""
    attachments: list[JsonValue] = [
        {"apiVersion": info.api_version, "resource": info.resource, "updateStrategy": {"method": "InPlace"}} for info in children
    ]
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "DecoratorController",
        "metadata": {"name": "tags", "uid": "uid-of-decorator", "resourceVersion": "7"},
        "spec": {
            "resources": [{"apiVersion": THINGS.api_version, "resource": THINGS.resource, **(rule or {})}],
            "attachments": attachments,
            "hooks": {"sync": {"webhook": {"url": "http://hook.example/sync"}}},
        },
    }


def a_parent(
    info: ResourceInfo = THINGS, *, name: str = "parent", uid: str = PARENT_UID, deleting: bool = False, **parts: JsonValue
) -> JsonObject:
    """A parent of generation 3 that selects LABELS."""
    metadata: JsonObject = {"name": name, "uid": uid, "resourceVersion": "30", "generation": 3}
    if info.namespaced:
        metadata["namespace"] = "default"
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: JsonObject = {"selector": {"matchLabels": LABELS}}
    return {"apiVersion": info.api_version, "kind": info.kind, "metadata": metadata, "spec": spec, **parts}


def config_map(name: str = "a", *, data: JsonObject | None = None, labels: JsonObject | None = None, namespace: str = "") -> JsonObject:
    """A ConfigMap as a hook answers it: without a namespace, and with labels that the parent selects."""
    metadata: JsonObject = {"name": name, "labels": {**(LABELS if labels is None else labels)}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {"key": "value"}}


def stored(
    obj: JsonObject, *, owner: JsonObject | None = None, namespace: str = "default", metadata: JsonObject | None = None
) -> JsonObject:
    """`obj` as the API server stores it: with namespace, UID and version, and controlled by `owner` if one is given."""
    own = obj["metadata"]
    assert isinstance(own, dict)
    kept: JsonObject = {"uid": f"uid-of-{own['name']}", "resourceVersion": "20", **own, **(metadata or {})}
    if namespace:
        kept["namespace"] = namespace
    if owner is not None:
        kept["ownerReferences"] = [reference_to(owner)]
    return {**obj, "metadata": kept}


def group(info: ResourceInfo = CONFIG_MAPS, *objects: JsonObject, method: UpdateMethod = "InPlace") -> ChildGroup:
    """The children, or the candidates, of one resource."""
    return ChildGroup(info=info, method=method, objects=objects)


def observed(
    *groups: ChildGroup, parent: JsonObject | None = None, info: ResourceInfo = THINGS, generate_selector: bool = False
) -> Observed:
    """A parent of `info` with candidates for children. Without any group, it has one without ConfigMaps."""
    raw = a_controller(parent=info, children=tuple(each.info for each in groups), generate_selector=generate_selector)
    the_parent = parent if parent is not None else a_parent(info)
    controller = parse_composite(raw)
    return observed_with(controller, info, the_parent, groups or (group(),), selector=child_selector(controller, the_parent))


def observed_with(
    controller: Controller, info: ResourceInfo, parent: JsonObject, groups: tuple[ChildGroup, ...], *, selector: Selector | None
) -> Observed:
    """A parent with these groups of candidates, and nothing else around it."""
    return Observed(
        controller=controller,
        info=info,
        parent=parent,
        groups=groups,
        selector=selector,
        revisions=(),
        related=None,
        managed_fields={},
        part="",
        inputs=(),
    )


def decorated(*groups: ChildGroup, parent: JsonObject | None = None, controller: JsonObject | None = None) -> Observed:
    """A Thing with candidates for attachments."""
    raw = controller if controller is not None else a_decorator(children=tuple(each.info for each in groups))
    the_parent = parent if parent is not None else a_parent()
    return observed_with(parse_decorator(raw), THINGS, the_parent, groups or (group(),), selector=None)


def granted(
    *candidates: JsonObject, parent: JsonObject | None = None, controller: JsonObject | None = None, info: ResourceInfo = THINGS
) -> Granted:
    """A granted claim: the parent with ConfigMaps as candidates."""
    observation = Observation(
        controller=controller if controller is not None else a_controller(parent=info),
        parent_resource=info,
        parent=parent if parent is not None else a_parent(info),
        children=[ObservedGroup(info=CONFIG_MAPS, objects=candidates)],
    )
    return Granted(lease="lease-1", lease_seconds=5.0, observation=observation)
