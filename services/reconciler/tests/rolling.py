"""Builders for rolling updates: a parent whose template rolls out to its Gadgets, and the hook that answers them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from builders import DYNAMIC_APPLY, EMPTY_ANSWER, LABELS, PARENT_UID, THINGS, observed_with, stored

from metaloop.common.api.composite import child_selector, parse_composite
from metaloop.common.api.revision import REVISIONS, ClaimedChild, children_field
from metaloop.common.api.rules import UpdateMethod
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.last_applied import new_child
from metaloop.reconciler.core.hooks.validation import desired_children
from metaloop.reconciler.core.kinds.composite import COMPOSITE
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed
from metaloop.reconciler.core.rollout.revisions import RevisionHistory, Revisions, revisions_of
from metaloop.reconciler.core.rollout.rollout import DesiredByRevision, RolloutRules

GADGETS = ResourceInfo(api_version="example.com/v1", resource="gadgets", kind="Gadget", namespaced=True, has_status=True)
READY_CHECK: JsonObject = {"type": "Ready", "status": "True"}
READY: JsonObject = {"conditions": [{"type": "Ready", "status": "True"}]}
NAMES = ("a", "b", "c")


def rolling_controller(
    *,
    method: UpdateMethod = "RollingInPlace",
    checks: tuple[JsonObject, ...] = (READY_CHECK,),
    field_paths: tuple[str, ...] = ("spec.template",),
    parent: ResourceInfo = THINGS,
    children: tuple[ResourceInfo, ...] = (GADGETS,),
    **spec: JsonValue,
) -> JsonObject:
    """A CompositeController whose children roll."""
    strategy: JsonObject = {"method": method, "statusChecks": {"conditions": [*checks]}}
    rules: list[JsonValue] = [{"apiVersion": info.api_version, "resource": info.resource, "updateStrategy": strategy} for info in children]
    history: JsonObject = {"fieldPaths": [*field_paths]}
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "things", "uid": "uid-of-controller", "resourceVersion": "7"},
        "spec": {
            "parentResource": {"apiVersion": parent.api_version, "resource": parent.resource, "revisionHistory": history},
            "childResources": rules,
            "hooks": {"sync": {"webhook": {"url": "http://hook.example/sync"}}},
            **spec,
        },
    }


def rolling_parent(text: str = "v1", *, names: Iterable[str] = NAMES, info: ResourceInfo = THINGS, **spec: JsonValue) -> JsonObject:
    """A parent that desires a Gadget of each name, all with this `text`."""
    metadata: JsonObject = {"name": "parent", "uid": PARENT_UID, "resourceVersion": "30", "generation": 3}
    if info.namespaced:
        metadata["namespace"] = "default"
    return {
        "apiVersion": info.api_version,
        "kind": info.kind,
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": LABELS}, "names": [*names], "template": {"text": text}, **spec},
    }


def gadget(name: str, text: str = "v1", *, namespace: str = "default") -> JsonObject:
    """A Gadget as the hook answers it."""
    return {
        "apiVersion": GADGETS.api_version,
        "kind": GADGETS.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "spec": {"text": text},
    }


def existing(name: str, text: str = "v1", *, status: JsonObject | None = READY, **metadata: JsonValue) -> JsonObject:
    """A Gadget that was created as the hook answered it. It is ready, unless another status is given."""
    made = stored(new_child(gadget(name, text), parent=rolling_parent()), metadata=metadata)
    return made if status is None else {**made, "status": status}


def gadgets_of(parent: JsonObject) -> Answer:
    """The hook's answer."""
    spec = unstructured.child_object(parent, "spec")
    names, text = spec.get("names"), unstructured.text(unstructured.child_object(spec, "template"), "text")
    assert isinstance(names, list)
    children = tuple([gadget(str(name), text) for name in names])
    return replace(EMPTY_ANSWER, status={"wanted": len(children)}, children=children)


def observed_gadgets(
    *children: JsonObject, parent: JsonObject | None = None, controller: JsonObject | None = None, info: ResourceInfo = THINGS
) -> Observed:
    """A parent with these Gadgets."""
    parsed = parse_composite(controller or rolling_controller(parent=info))
    the_parent = parent or rolling_parent(info=info)
    gadgets = ChildGroup(info=GADGETS, method=parsed.children[0].method, objects=children)
    return observed_with(parsed, info, the_parent, (gadgets,), selector=child_selector(parsed, the_parent))


def claimed(*names: str, info: ResourceInfo = GADGETS) -> frozenset[ClaimedChild]:
    """Children as a revision names them."""
    return frozenset(ClaimedChild(info.group, info.kind, name) for name in names)


def revision(
    text: str = "v1",
    *names: str,
    name: str = "",
    made: str = "2026-01-01T00:00:00Z",
    patch: JsonObject | None = None,
    is_orphan: bool = False,
    metadata: JsonObject | None = None,
) -> JsonObject:
    """A stored ControllerRevision of the template with this `text`, with the Gadgets that follow it."""
    spec: JsonObject = {"template": {"text": text}}
    own: JsonObject = {
        "apiVersion": REVISIONS.api_version,
        "kind": REVISIONS.kind,
        "metadata": {"name": name or f"things.example.com-{text}", "labels": {**LABELS}},
        "parentPatch": {"spec": spec} if patch is None else patch,
        "children": children_field(claimed(*names)),
    }
    return stored(own, owner=None if is_orphan else rolling_parent(), metadata={"creationTimestamp": made, **(metadata or {})})


def history_of(observed: Observed) -> RevisionHistory:
    """How the revisions of a parent are kept while its children roll."""
    history = COMPOSITE.history(observed)
    assert history is not None
    return history


def revisions_with(observed: Observed, stored: Sequence[JsonObject] = ()) -> Revisions:
    """The revisions of a parent, of which these are `stored`."""
    return revisions_of(observed, stored, history=history_of(observed))


def rules_of(observed: Observed, unused: Sequence[JsonObject] = ()) -> RolloutRules:
    """The rules by which the children of a parent roll, with dynamic apply."""
    return RolloutRules(strategy=DYNAMIC_APPLY, history=history_of(observed), unused=unused)


def answered_by(observed: Observed, revisions: Revisions, *, answers: Mapping[str, Answer] | None = None) -> list[DesiredByRevision]:
    """The live revisions with the children that the hook desires for each. `answers` has other answers, by revision."""
    return [
        DesiredByRevision(
            revision=each, children=desired_children((answers or {}).get(each.name) or gadgets_of(each.parent), observed, variant=COMPOSITE)
        )
        for each in revisions.live
    ]


def answered_with(observed: Observed, *revisions: JsonObject) -> list[DesiredByRevision]:
    """As `answered_by`, of these stored revisions."""
    return answered_by(observed, revisions_with(observed, revisions))
