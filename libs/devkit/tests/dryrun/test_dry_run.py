"""The writes of a plan: each has its reason and the object before and after it. The cluster is only read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from memory_cluster import CONFIG_MAPS, REVISIONS, MemoryCluster

from metaloop.common.api import MAX_DELETE_SHARE_ANNOTATION
from metaloop.common.api.hook import Hook
from metaloop.common.api.revision import claimed_by
from metaloop.common.errors import MetaloopError
from metaloop.common.faults import Fault
from metaloop.common.http.body import Body, whole
from metaloop.common.json import JsonObject, JsonValue, dumps, loads
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects import unstructured
from metaloop.devkit.dryrun.controllers import find_by_controller, served_by
from metaloop.devkit.dryrun.driver import DryRun, PlannedWrite, Reads, dry_run, running_schemas
from metaloop.devkit.dryrun.snapshot import ClusterSnapshot
from metaloop.reconciler.cluster_reader import ClusterReader
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.errors import HookFailed
from metaloop.reconciler.ports import LeaseGuard, Slot
from metaloop.reconciler.strategies import Strategies

Answer = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True)
class Hooks:
    """Hooks that are functions, by their names."""

    answers: Mapping[str, Answer]

    async def call(self, observed: Observed, hook: Hook, bodies: Mapping[str, Body], *, slot: Slot, lease: LeaseGuard) -> list[bytes]:
        """The answer of this hook's function."""
        del observed, lease
        async with slot.waiting():
            return [dumps(self.answers[hook.name](loads(whole(body)))) for body in bodies.values()]


def texts(*names: str, text: str = "") -> Answer:
    """A hook that desires these ConfigMaps, with the parent's text unless one is given."""

    def answer(request: JsonObject) -> JsonObject:
        parent = unstructured.child_object(request, "parent")
        said = text or unstructured.text(unstructured.child_object(parent, "spec"), "text")
        return {"children": [_config_map(name, text=said, parent=unstructured.name(parent)) for name in names]}

    return answer


def _config_map(name: str, *, text: str, parent: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"parent": parent}}, "data": {"text": text}}


async def plan(kube: KubeClient, *, strategy: str = "dynamic-apply", **hooks: Answer) -> DryRun:
    """The plan for the parent p of the controller web."""
    found = await find_by_controller(kube, "web", "default/p")
    snapshot = ClusterSnapshot(kube, await served_by(kube), field_manager="metacontroller")
    granted = await snapshot.observed(found.instance, found.controller, found.info, found.parent)
    async with running_schemas(kube) as schemas:
        reads = Reads(
            api=kube,
            subscriptions=snapshot,
            hooks=Hooks(hooks),
            strategies=Strategies(schemas=schemas, default=strategy),
            cluster=ClusterReader(Discovery(kube), uid="cluster", width=2),
        )
        return await dry_run(granted, reads)


def summary(result: DryRun) -> list[str]:
    """The verb and the object of each write."""
    return [f"{write.verb} {write.name}{f' ({write.subresource})' if write.subresource else ''}" for write in result.writes]


def data_of(obj: JsonObject | None) -> JsonValue:
    """The data of a ConfigMap. None if there is no ConfigMap."""
    return obj.get("data") if obj is not None else None


def only(result: DryRun, verb: str) -> PlannedWrite:
    """The one write of this verb."""
    [write] = [write for write in result.writes if write.verb == verb]
    return write


async def test_new_child_is_planned_with_the_owner_that_it_will_have(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.thing("p")

    result = await plan(kube, sync=texts("a", text="hello"))

    assert summary(result) == ["create ConfigMap default/a", "update Thing default/p (status)"]
    created = result.writes[0]
    assert (created.before, data_of(created.after), created.reason) == (None, {"text": "hello"}, "desired, and not there")
    assert created.after is not None
    assert unstructured.metadata(created.after)["ownerReferences"]


async def test_child_that_differs_is_shown_as_it_is_and_as_it_will_be(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.config_map("a", of=cluster.thing("p"), text="before")

    update = (await plan(kube, sync=texts("a", text="after"))).writes[0]

    assert (update.verb, data_of(update.before), data_of(update.after)) == ("update", {"text": "before"}, {"text": "after"})


async def test_child_that_goes_is_shown_as_it_is(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.config_map("a", of=cluster.thing("p"), text="before")

    deletion = only(await plan(kube, sync=texts()), "delete")

    assert (data_of(deletion.before), deletion.after, deletion.reason) == ({"text": "before"}, None, "no longer desired")


async def test_orphan_is_planned_to_be_adopted_before_it_is_updated(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    cluster.thing("p")
    unstructured.metadata(cluster.config_map("a", text="same"))["labels"] = {"parent": "p"}

    result = await plan(kube, sync=texts("a", text="same"))

    assert summary(result)[:2] == ["adopt ConfigMap default/a", "update ConfigMap default/a"]


async def test_recreated_child_is_shown_with_what_its_successor_will_have(cluster: MemoryCluster, kube: KubeClient) -> None:
    strategy: JsonObject = {"method": "Recreate"}
    cluster.composite("web", childResources=[{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": strategy}])
    cluster.thing("p")
    created = only(await plan(kube, sync=texts("a", text="before")), "create").after
    assert created is not None
    cluster.put(CONFIG_MAPS, created)

    again = only(await plan(kube, sync=texts("a", text="after")), "recreate")

    assert (data_of(again.before), data_of(again.after)) == ({"text": "before"}, {"text": "after"})


async def test_server_side_apply_shows_the_fields_that_it_sets_and_no_others(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.composite("web")
    child = cluster.config_map("a", of=cluster.thing("p"), text="before")
    child["data"] = {"text": "before", "theirs": "kept"}

    apply = (await plan(kube, strategy="server-side-apply", sync=texts("a", text="after"))).writes[0]

    assert (apply.verb, data_of(apply.before), data_of(apply.after)) == ("apply", {"text": "before"}, {"text": "after"})


async def test_revisions_are_planned_before_the_children_that_move(cluster: MemoryCluster, kube: KubeClient) -> None:
    strategy: JsonObject = {"method": "RollingInPlace"}
    cluster.composite("web", childResources=[{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": strategy}])
    parent = cluster.thing("p", spec={"selector": {"matchLabels": {"parent": "p"}}, "text": "before"})
    first = only_revision(await plan(kube, sync=texts("a", "b")))
    cluster.put(REVISIONS, first)
    for name in ("a", "b"):
        cluster.config_map(name, of=parent, text="before")
    unstructured.child_object(parent, "spec")["text"] = "after"

    result = await plan(kube, sync=texts("a", "b"))

    verbs = [(write.verb, write.info.kind) for write in result.writes]
    assert verbs[:3] == [("create", "ControllerRevision"), ("update", "ControllerRevision"), ("update", "ConfigMap")]
    assert _children_of(result.writes[1].before) == ["a", "b"]
    assert _children_of(result.writes[1].after) == ["b"]


async def test_related_objects_are_shown_to_the_hook(cluster: MemoryCluster, kube: KubeClient) -> None:
    hooks = {name: {"webhook": {"url": f"http://hook.example/{name}"}} for name in ("sync", "customize")}
    cluster.composite("web", hooks=hooks)
    cluster.thing("p")
    cluster.config_map("shared", text="seen")
    shown: list[JsonObject] = []

    def sync(request: JsonObject) -> JsonObject:
        shown.append(unstructured.child_object(unstructured.child_object(request, "related"), "ConfigMap.v1"))
        return {}

    rules: JsonObject = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "names": ["shared"]}]}
    await plan(kube, sync=sync, customize=lambda _: rules)

    assert [[*each] for each in shown] == [["shared"]]


async def test_finalizer_is_planned_first(cluster: MemoryCluster, kube: KubeClient) -> None:
    hooks = {name: {"webhook": {"url": f"http://hook.example/{name}"}} for name in ("sync", "finalize")}
    cluster.composite("web", hooks=hooks)
    cluster.thing("p")

    result = await plan(kube, sync=texts("a"))

    assert summary(result) == ["update Thing default/p", "create ConfigMap default/a", "update Thing default/p (status)"]
    assert result.writes[0].reason == "the metadata differ"


FAILURES: dict[str, tuple[MetaloopError, str, list[str]]] = {
    # what it shows: (what the hook raises, the reason of the report, the events)
    "a webhook that fails": (
        HookFailed(hook="sync", fault=Fault.STATUS_UNEXPECTED, message="answered 500"),
        "StatusUnexpected",
        ["Warning SyncError on Thing default/p: Sync error: sync hook: answered 500"],
    ),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_failure_ends_the_plan_and_is_told_as_it_would_be(
    cluster: MemoryCluster, kube: KubeClient, failure: tuple[MetaloopError, str, list[str]]
) -> None:
    error, reason, events = failure
    cluster.composite("web")
    cluster.config_map("a", of=cluster.thing("p"))

    def failing(_: JsonObject) -> JsonObject:
        raise error

    result = await plan(kube, sync=failing)

    assert result.report is not None
    assert (result.writes, result.report.reason, result.events) == ([], reason, events)


async def test_deletion_that_a_guard_holds_back_is_not_planned(cluster: MemoryCluster, kube: KubeClient) -> None:
    controller = cluster.composite("web")
    unstructured.metadata(controller)["annotations"] = {MAX_DELETE_SHARE_ANNOTATION: "0"}
    parent = cluster.thing("p")
    for number in range(6):
        cluster.config_map(f"c{number}", of=parent)

    result = await plan(kube, sync=texts("new"))

    assert summary(result) == ["create ConfigMap default/new", "update Thing default/p (status)"]
    assert result.report is not None
    assert result.report.reason == "DeletionHeldBack"


async def test_component_is_planned_wave_by_wave(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.component("web")
    cluster.thing("p")
    cluster.config_map("there")
    later: JsonObject = {"op.example.com/apply-order": "1"}
    children = [_config_map(name, text="hello", parent="p") for name in ("new", "there")]
    unstructured.metadata(children[0])["annotations"] = later

    result = await plan(kube, generate=lambda _: {"children": [*children]})

    assert [(each.wave, each.verb, each.name) for each in result.writes] == [
        ("wave 0", "adopt", "ConfigMap default/there"),
        ("wave 1", "create", "ConfigMap default/new"),
    ]
    assert data_of(result.writes[0].before) == {"text": ""}
    assert data_of(result.writes[0].after) == {"text": "hello"}
    assert {each.split()[0] for each in cluster.asked} == {"GET"}


async def test_failure_of_a_component_ends_its_plan(cluster: MemoryCluster, kube: KubeClient) -> None:
    cluster.component("web")
    cluster.thing("p")

    result = await plan(kube, generate=lambda _: {"children": [{"apiVersion": "v1", "kind": "ConfigMap"}]})

    assert result.report is not None
    assert (result.writes, result.report.reason) == ([], "InvalidAnswer")


@pytest.mark.parametrize("strategy", ["dynamic-apply", "server-side-apply"])
async def test_nothing_but_reads_reaches_the_cluster(cluster: MemoryCluster, kube: KubeClient, strategy: str) -> None:
    cluster.composite("web")
    parent = cluster.thing("p")
    cluster.config_map("old", of=parent)
    cluster.config_map("changed", of=parent, text="before")

    result = await plan(kube, strategy=strategy, sync=texts("changed", "new", text="after"))

    assert {each.split()[0] for each in cluster.asked} == {"GET"}
    assert len(result.writes) == 4


def only_revision(result: DryRun) -> JsonObject:
    """The ControllerRevision that a plan creates."""
    [revision] = [write.after for write in result.writes if write.info.kind == "ControllerRevision"]
    assert revision is not None
    return revision


def _children_of(revision: JsonObject | None) -> list[str]:
    assert revision is not None
    return sorted(child.name for child in claimed_by(revision))
