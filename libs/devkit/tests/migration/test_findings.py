"""What is said of a controller before Metaloop takes over: from its spec, its parents, children and revisions."""

from collections.abc import Sequence

import pytest

from metaloop.common.api import LAST_APPLIED_ANNOTATION, MAX_CONCURRENT_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.migration.findings import ControllerFacts, Finding, Level, findings_of

THINGS = ResourceInfo(api_version="example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False)
SERVED = {info.id: info for info in (THINGS, CONFIG_MAPS, NAMESPACES)}
FINALIZER = "metacontroller.io/compositecontroller-c"


def controller(*, children: ResourceInfo = CONFIG_MAPS, hooks: JsonObject | None = None, **spec: object) -> JsonObject:
    webhook: JsonObject = {"webhook": {"url": "http://hook.example.com/sync"}}
    return {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "CompositeController",
        "metadata": {"name": "c", "uid": "c", "annotations": {MAX_CONCURRENT_ANNOTATION: "5"}},
        "spec": {
            "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource},
            "childResources": [{"apiVersion": children.api_version, "resource": children.resource}],
            "hooks": {"sync": webhook, **(hooks or {})},
            **spec,  # type: ignore[dict-item]
        },
    }


def parent(name: str = "p", **metadata: object) -> JsonObject:
    return {"apiVersion": THINGS.api_version, "kind": "Thing", "metadata": {"name": name, "namespace": "n", "uid": name, **metadata}}  # type: ignore[dict-item]


def child(name: str = "a", *, of: str = "p", namespace: str = "n", applied: str | None = "{}", kind: str = "ConfigMap") -> JsonObject:
    owner: JsonObject = {"apiVersion": THINGS.api_version, "kind": "Thing", "name": of, "uid": of, "controller": True}
    annotations: JsonObject = {} if applied is None else {LAST_APPLIED_ANNOTATION: applied}
    metadata: JsonObject = {"name": name, "namespace": namespace, "ownerReferences": [owner], "annotations": annotations}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def revision(name: str, *names: str) -> JsonObject:
    return {**child(name, kind="ControllerRevision"), "children": [{"apiGroup": "", "kind": "ConfigMap", "names": [*names]}]}


def found(raw: JsonObject, **facts: Sequence[JsonObject]) -> list[Finding]:
    return findings_of(ControllerFacts(raw=raw, served=SERVED, **facts))


def test_a_controller_in_good_order_needs_nothing():
    assert found(controller(), parents=[parent()], children=[child()], revisions=[revision("r", "a")]) == []


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (controller(hooks={"sync": {"webhook": {}}}), "spec.hooks.sync.webhook: needs a url"),
        (controller(parentResource={"apiVersion": "example.com/v1", "resource": "others"}), "example.com/v1/others"),
        (controller(children=NAMESPACES), "v1/namespaces is cluster-scoped: an answer with such a child is refused"),
    ],
    ids=["an invalid spec", "a kind that is not served", "a wider child"],
)
def test_what_metaloop_does_not_serve_blocks(raw: JsonObject, text: str):
    [finding] = found(raw)

    assert finding.level is Level.BLOCKS
    assert text in finding.message


def test_a_child_in_another_namespace_blocks():
    [finding] = found(controller(), parents=[parent()], children=[child(namespace="elsewhere")])

    assert str(finding) == "blocks: children in another namespace than their parent, which Metaloop refuses: ConfigMap/elsewhere/a"


def test_credentials_of_webhooks_have_to_be_granted_to_the_gateway():
    reference: JsonObject = {"name": "hook", "namespace": "shop", "key": "token"}
    webhook: JsonObject = {"url": "https://hook.example.com", "authorization": {"secretRef": reference}}

    [finding] = found(controller(hooks={"sync": {"webhook": webhook}}))

    assert finding.level is Level.PREPARE
    assert "needs the Secret shop/hook" in finding.message


@pytest.mark.parametrize(("seconds", "text"), [(0, "Metaloop never by itself"), (3600, "Metaloop keeps them")])
def test_periods_that_metacontroller_reads_otherwise_are_told(seconds: int, text: str):
    [finding] = found(controller(resyncPeriodSeconds=seconds))

    assert (finding.level, text in finding.message) == (Level.DIFFERS, True)


def test_a_webhook_gets_more_calls_at_once_unless_it_is_annotated():
    raw = controller()
    raw["metadata"] = {"name": "c", "uid": "c"}

    [finding] = found(raw, parents=[parent()])

    assert 'annotate it with metaloop.dev/max-concurrent: "5"' in finding.message


def test_finalizers_that_are_about_to_go_are_named():
    [finding] = found(controller(), parents=[parent(finalizers=[FINALIZER])])

    assert finding.message == f"it has no finalize hook any more: {FINALIZER} is taken off Thing/n/p"


def test_finalize_hooks_that_are_about_to_be_called_are_told():
    hooks: JsonObject = {"finalize": {"webhook": {"url": "http://hook.example.com/finalize"}}}

    [finding] = found(controller(hooks=hooks), parents=[parent(finalizers=[FINALIZER], deletionTimestamp="now")])

    assert "finalize hook is called at once" in finding.message


def test_children_without_a_record_of_what_was_applied_are_told():
    bare = [child(name, applied=None) for name in "abcd"]

    [finding] = found(controller(), parents=[parent()], children=bare)

    assert finding.message.endswith("stay on them: ConfigMap/n/a, ConfigMap/n/b, ConfigMap/n/c and 1 more")


def test_children_that_were_applied_server_side_need_no_record():
    applied = child(applied=None)
    applied["metadata"]["managedFields"] = [{"manager": "metacontroller", "operation": "Apply"}]  # type: ignore[call-overload, index]

    assert found(controller(), parents=[parent()], children=[applied]) == []


def test_a_record_that_nobody_can_read_has_to_be_repaired():
    [finding] = found(controller(), parents=[parent()], children=[child(applied="{")])

    assert (finding.level, "is no JSON object: ConfigMap/n/a" in finding.message) == (Level.PREPARE, True)


def test_a_rollout_that_stands_still_goes_on():
    """Metacontroller moves one child and then waits for ever."""
    [finding] = found(controller(), parents=[parent()], children=[child()], revisions=[revision("r1", "a"), revision("r2")])

    assert finding.message == "a rollout is not finished, and goes on at once: Thing/n/p"


def test_a_revision_that_names_children_that_are_gone_is_corrected():
    [finding] = found(controller(), parents=[parent()], children=[child()], revisions=[revision("r", "a", "gone")])

    assert finding.message == "revisions name children that are gone, and are corrected: ControllerRevision/n/r"


def test_children_of_others_are_nobodys_concern():
    assert found(controller(), parents=[parent()], children=[child(of="other", applied=None)]) == []


def test_what_blocks_is_told_first():
    levels = [finding.level for finding in found(controller(children=NAMESPACES, resyncPeriodSeconds=0))]

    assert levels == [Level.BLOCKS, Level.DIFFERS]
