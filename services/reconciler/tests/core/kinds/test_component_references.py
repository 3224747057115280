"""Passes over a component that refers to Secrets and ConfigMaps."""

import pytest
from component_world import World, a_component_controller
from components import manifest

from metaloop.common.errors import InvalidParent
from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.steps import SubscribeRelated
from metaloop.reconciler.errors import ReferenceMissing

HOOK: JsonObject = {"webhook": {"url": "http://hook.example/"}}


def settings(**data: JsonValue) -> JsonObject:
    """The ConfigMap that the component refers to."""
    return {**manifest(name="settings", namespace="default"), "data": data}


def referring(world: World, **spec: JsonValue) -> World:
    """The world with a component that refers to the settings, and with this in its controller's spec."""
    world.controller = a_component_controller(references=[{"path": ".spec.settings", "kind": "ConfigMap"}], **spec)
    world.component = {**(world.component or {}), "spec": {"settings": "settings"}}
    return world


@pytest.fixture
def world() -> World:
    return referring(World())


def test_component_waits_for_what_it_refers_to(world: World):
    world.desires(manifest(name="a"))

    assert isinstance(world.run(), ReferenceMissing)

    assert (world.written, "generate" in world.step_names) == ([], False)
    assert (world.status["state"], world.ready["reason"]) == ("Pending", "Retrying")
    assert "ConfigMap default/settings does not exist" in str(world.ready["message"])


def test_component_is_subscribed_before_anything_is_read(world: World):
    world.run()

    assert world.step_names.index("SubscribeRelated") < world.step_names.index("ReadObjects")
    [subscription] = [step for step in world.steps if isinstance(step, SubscribeRelated)]
    assert [(query.resource.resource, query.names) for query in subscription.queries] == [("configmaps", {"settings"})]


def test_component_goes_on_once_it_is_there(world: World):
    world.desires(manifest(name="a"))
    world.run()
    world.add(settings(k="v"))

    assert world.run() is None

    assert (world.status["state"], world.phases) == ("Ready", {"a": "Ready"})
    assert world.asked["references"] == [
        {"path": ".spec.settings", "kind": "ConfigMap", "namespace": "default", "name": "settings", "data": {"k": "v"}}
    ]


def test_what_the_watch_does_not_show_yet_is_read(world: World):
    world.is_watched = False
    world.add(settings(k="v"))

    assert world.run() is None

    assert world.reads == ["settings"]


def test_changed_contents_change_the_component(world: World):
    world.desires(manifest(name="a", reconcile_policy="on-object-or-component-change"))
    world.add(settings(k="v"))
    world.run()
    revision = world.status["revision"]

    world.edit("settings", data={"k": "w"})
    world.run()

    assert (revision, world.status["revision"]) == (1, 2)
    assert world.written == [["update a"]]


def test_component_in_sync_reads_nothing_and_writes_nothing(world: World):
    world.desires(manifest(name="a"))
    world.add(settings(k="v"))
    world.run()

    world.run()

    assert (world.reads, world.written) == ([], [])


def test_objects_stay_while_what_the_component_refers_to_is_missing(world: World):
    world.desires(manifest(name="a"))
    world.add(settings(k="v"))
    world.run()
    digest = world.status["processingDigest"]
    world.desires()
    world.objects = {key: obj for key, obj in world.objects.items() if key.name != "settings"}

    world.run()

    assert (world.phases, world.status["processingDigest"]) == ({"a": "Ready"}, digest)


def test_object_that_the_component_refers_to_may_be_one_of_its_own(world: World):
    """Somebody else made it first. It is read before it is adopted, as the watch may show an old state of it."""
    world.desires({**settings(k="ours")})
    world.add(settings(k="v"))

    world.run()

    assert (world.written, world.reads) == ([["update settings"]], ["settings"])
    world.run()
    assert (world.written, world.status["revision"], world.status["state"]) == ([], 2, "Ready")


def test_what_is_no_reference_is_told_in_the_status(world: World):
    world.component = {**(world.component or {}), "spec": {"settings": 1}}

    assert isinstance(world.run(), InvalidParent)

    assert (world.status["state"], world.ready["reason"]) == ("Error", "InvalidParent")


def test_deletion_asks_for_references_only_where_a_hook_is_sent_them():
    lost = deployed_without_settings()
    lost.run()
    assert lost.objects == {}

    kept = deployed_without_settings(hooks={"preDelete": HOOK})
    assert isinstance(kept.run(), ReferenceMissing)
    assert (kept.status["state"], kept.ready["reason"], len(kept.objects)) == ("DeletionPending", "DeletionRetrying", 1)


def deployed_without_settings(**spec: JsonValue) -> World:
    """A component that is being deleted, and whose settings are gone already."""
    world = referring(World(), **spec)
    world.desires(manifest(name="a"))
    world.add(settings(k="v"))
    world.run()
    world.objects = {key: obj for key, obj in world.objects.items() if key.name != "settings"}
    world.delete()
    return world
