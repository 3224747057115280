"""The dry run and the sync of the same parent: the plan has exactly the writes of the sync, in their order."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, a_controller, a_decorator, a_parent, config_map, observed, stored
from fake_api import FakeApi
from fake_hooks import FakeHooks, FakeSubscriptions
from known_schemas import GuessedSchemas
from rolling import NAMES
from rolling_sync import RollingSync
from syncing import Sync

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.hook import LIFECYCLE_HOOKS, Hook, LifecycleHookName
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects import unstructured
from metaloop.common.observation import Granted, ObservedGroup, Related
from metaloop.common.report import SyncReport
from metaloop.devkit.dryrun.driver import DryRun, Reads, RecordingDriver, dry_run
from metaloop.reconciler.cluster_reader import ClusterReader
from metaloop.reconciler.core.apply.last_applied import new_child
from metaloop.reconciler.core.children.deletion_guard import DEFAULT_LIMITS
from metaloop.reconciler.core.steps import CallHook
from metaloop.reconciler.deletion_guards import DeletionGuards
from metaloop.reconciler.errors import HookThrottled
from metaloop.reconciler.observe import key_of
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import SyncRun

FINALIZER = "metacontroller.io/compositecontroller-things"


async def planned(granted: Granted, hooks: FakeHooks, subscriptions: FakeSubscriptions) -> DryRun:
    """The plan for a sync."""
    return await dry_run(granted, reads_of(hooks, subscriptions))


def reads_of(hooks: FakeHooks, subscriptions: FakeSubscriptions) -> Reads:
    """What a plan reads with."""
    api = FakeApi()
    return Reads(
        api=api,
        subscriptions=subscriptions,
        hooks=hooks,
        strategies=Strategies(schemas=GuessedSchemas(), default="dynamic-apply"),
        cluster=ClusterReader(Discovery(api), uid="cluster", width=2),  # type: ignore[arg-type]
    )


def lines_of(result: DryRun) -> list[str]:
    """The resource and the name of each planned write."""
    return [f"{write.info.resource} {write.name.split(' ', 1)[1]}" for write in result.writes]


def lines_in(report: SyncReport) -> list[str]:
    """The resource and the name of each write of a sync."""
    return [f"{write.resource.resource} {write.namespace}/{write.name}" for write in report.writes]


def wants(*names: str, **rest: JsonValue) -> Callable[[JsonObject], JsonObject]:
    """A hook that desires these ConfigMaps."""
    return lambda _: {"children": [config_map(name) for name in names], **rest}


def child(name: str, *, value: str = "value") -> JsonObject:
    """A ConfigMap that an earlier sync created."""
    return stored(new_child(config_map(name, data={"key": value}, namespace="default"), parent=a_parent()))


def a_world(hook: Callable[[JsonObject], JsonObject], *children: JsonObject, **cluster: JsonObject) -> Sync:
    """A cluster with one parent and these ConfigMaps."""
    sync = Sync(hook, **cluster)  # type: ignore[arg-type]
    for each in children:
        sync.api.put(CONFIG_MAPS, each)
    return sync


def with_hooks(*names: str, **strategy: JsonValue) -> JsonObject:
    """A controller with these hooks beside sync."""
    controller = a_controller(**strategy)  # type: ignore[arg-type]
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    for name in names:
        hooks[name] = {"webhook": {"url": f"http://hook.example/{name}"}}
    return controller


def going(*finalizers: str) -> JsonObject:
    """A parent whose deletion waits for these finalizers."""
    parent = a_parent(deleting=True)
    unstructured.metadata(parent)["finalizers"] = [*finalizers]
    return parent


WORLDS: Mapping[str, Callable[[], Sync]] = {
    "a fresh parent": lambda: a_world(wants("a", "b", status={"phase": "New"})),
    "a parent at rest": lambda: a_world(wants("a"), child("a"), parent=a_parent(status={"observedGeneration": 3})),
    "children to delete, update and create": lambda: a_world(wants("b", "c"), child("a"), child("b", value="old")),
    "an orphan to adopt": lambda: a_world(wants("a"), stored(config_map("a"))),
    "a child to release": lambda: a_world(wants(), stored(config_map("a", labels={"app": "other"}), owner=a_parent())),
    "children to recreate": lambda: a_world(wants("a"), child("a", value="old"), controller=a_controller(method="Recreate")),
    "children that are left as they are": lambda: a_world(wants("a"), child("a", value="old"), controller=a_controller(method="OnDelete")),
    "a finalizer to add": lambda: a_world(wants("a"), controller=with_hooks("finalize")),
    "a parent that goes": lambda: a_world(wants(finalized=True), child("a"), controller=with_hooks("finalize"), parent=going(FINALIZER)),
    "a parent that others hold": lambda: a_world(
        wants(finalized=True), controller=with_hooks("finalize"), parent=going("theirs", FINALIZER)
    ),
    "a decorated object": lambda: a_world(
        lambda _: {"attachments": [config_map("a")], "labels": {"seen": "yes"}, "status": {"on": True}}, controller=a_decorator()
    ),
    "a paused parent": lambda: a_world(wants("a"), parent=_paused(a_parent())),
    "an answer that is none": lambda: a_world(lambda _: {"children": [None]}, child("a")),
    "an answer that asks for a resync": lambda: a_world(wants(resyncAfterSeconds=5)),
}


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
async def test_plan_names_the_writes_that_a_sync_carries_out(world: Callable[[], Sync]):
    sync = world()

    result = await planned(sync.observe(), sync.hooks, sync.subscriptions)
    before = dict(sync.api.requests)
    report = await sync.run()

    assert before == {}
    assert lines_of(result) == lines_in(report)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
async def test_plan_ends_as_a_sync_does(world: Callable[[], Sync]):
    sync = world()

    result = await planned(sync.observe(), sync.hooks, sync.subscriptions)
    report = await sync.run()

    assert result.report is not None
    effects = {"writes": report.writes, "actions": report.actions, "hook_seconds": report.hook_seconds}  # a plan has none
    assert replace(result.report, **effects) == report
    assert [event.split(" on ")[0] for event in result.events] == [f"{kind} {reason}" for kind, reason, _ in sync.recorder.told]


async def test_plan_of_each_step_of_a_rollout_names_revisions_first():
    sync = RollingSync()

    for text in ("v1", "v1", "v2", "v2", "v2", "v2"):
        sync.say(text)
        result = await planned(sync.observe(), sync.hooks, sync.subscriptions)
        report = await sync.run()
        sync.heal(*NAMES)

        assert lines_of(result) == lines_in(report)
    assert sync.revisions == {"v2": ["a", "b", "c"]}


async def test_hook_is_asked_the_same_as_by_a_sync():
    sync = a_world(wants("a"), child("a", value="old"), controller=with_hooks("customize"))
    shared = Related(fingerprint="", groups=[ObservedGroup(info=CONFIG_MAPS, objects=[stored(config_map("shared"))])])
    sync.subscriptions.selected = shared
    sync.hooks.rules = lambda _: {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "names": ["shared"]}]}

    await planned(sync.observe(), sync.hooks, sync.subscriptions)
    await sync.run()

    assert sync.hooks.requests[0] == sync.hooks.requests[1]
    assert sync.hooks.customized[0] == sync.hooks.customized[1]
    assert replace(sync.subscriptions.told[0], lease="") == replace(sync.subscriptions.told[1], lease="")


async def test_hook_that_is_busy_ends_the_plan_as_it_ends_a_sync():
    def busy(_: JsonObject) -> JsonObject:
        raise HookThrottled(5.0, fault=Fault.CIRCUIT_OPEN, message="the circuit is open")

    sync = a_world(busy, child("a"))

    result = await planned(sync.observe(), sync.hooks, sync.subscriptions)

    assert result.report is not None
    assert (result.report.result, result.report.reason, result.writes) == ("throttled", "CircuitOpen", [])


async def test_plan_teaches_the_services_nothing():
    """A dry run does not announce a pause, so the next sync does."""
    sync = a_world(wants(), controller=a_decorator(), parent=_paused(a_parent()))

    first = await planned(sync.observe(), sync.hooks, sync.subscriptions)
    second = await planned(sync.observe(), sync.hooks, sync.subscriptions)
    await sync.run()

    assert len(first.events) == len(second.events) == len(sync.recorder.told) == 1


def _paused(parent: JsonObject) -> JsonObject:
    unstructured.metadata(parent)["annotations"] = {PAUSED_ANNOTATION: "true"}
    return parent


@pytest.mark.parametrize("name", LIFECYCLE_HOOKS)
async def test_hooks_that_may_do_more_than_answer_are_not_called(name: LifecycleHookName):
    sync = a_world(wants("a"))
    granted = sync.observe()
    driver = RecordingDriver(
        result=DryRun(),
        run=SyncRun(granted=granted, key=key_of(granted.observation)),
        reads=reads_of(sync.hooks, sync.subscriptions),
        guards=DeletionGuards(limits=DEFAULT_LIMITS),
    )
    hook = Hook(name=name, version="v1", strict=False, webhook={"url": "http://hook.example/"})

    answers = await driver.carry_out(CallHook(observed(), hook, {"": b"{}"}))

    assert (answers, sync.hooks.requests) == ([b"{}"], [])
