"""Passes over a component, one by one: what each writes, and what its status says then."""

import pytest
from component_world import World, a_component_controller
from components import PREFIX, crd, key, manifest, widget

from metaloop.common.errors import Conflict, InvalidAnswer, Unavailable
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.steps import RecordEvent, WriteChildren
from metaloop.reconciler.errors import HookThrottled, NameTaken, WritesFailed

AVAILABLE: JsonObject = {
    "observedGeneration": 1,
    **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1),
    "conditions": [{"type": "Available", "status": "True"}],
}


def deployment(name: str = "web", **settings: str) -> JsonObject:
    """A Deployment."""
    return manifest("Deployment", name, api_version="apps/v1", **settings)


@pytest.fixture
def world() -> World:
    return World()


def test_component_without_dependents_that_wait_is_ready_after_one_pass(world: World):
    world.desires(manifest(name="a"), manifest("Service", "b"))

    assert world.run() is None

    assert (world.status["state"], world.ready["status"]) == ("Ready", "True")
    assert world.phases == {"a": "Ready", "b": "Ready"}
    assert world.resync_seconds == 600


def test_objects_are_in_the_persisted_inventory_before_they_are_created(world: World):
    world.desires(manifest(name="a"))

    world.run()

    names = [type(step).__name__ for step in world.steps]
    assert names.index("WriteChildren") > [index for index, name in enumerate(names) if name == "EditParent"][1]


def test_kinds_of_a_wave_are_created_in_their_canonical_order(world: World):
    world.desires(deployment(), manifest(name="a"), manifest(name="b"), manifest("Namespace", "n"))

    world.run()

    assert world.written == [["create n"], ["create a", "create b"], ["create web"]]


def test_next_wave_waits_until_the_one_before_is_ready(world: World):
    world.desires(deployment(apply_order="-1"), manifest(name="late"))
    world.run()
    assert (world.written, world.phases["late"]) == ([["create web"]], "ScheduledForApplication")
    assert (world.status["state"], world.ready["message"]) == ("Processing", "Waiting for Deployment default/web: replicas: 0/1")

    world.edit("web", status=AVAILABLE)
    world.run()

    assert (world.written, world.status["state"]) == ([["create late"]], "Ready")


def test_instances_of_a_type_wait_until_it_is_established(world: World):
    world.desires(widget(), crd())
    world.run()
    assert world.written == [["create widgets.example.com"]]

    world.edit(
        "widgets.example.com", status={"conditions": [{"type": each, "status": "True"} for each in ("Established", "NamesAccepted")]}
    )
    world.run()

    assert (world.written, world.status["state"]) == ([["create w"]], "Ready")


def test_component_in_sync_costs_no_reads_and_no_writes(world: World):
    world.desires(*(manifest(name=name) for name in "abc"))
    world.run()
    before = world.component

    world.run(after_seconds=60)

    assert (world.written, world.reads, world.component) == ([], [], before)


def test_change_of_one_object_writes_one_object(world: World):
    world.desires(*({**manifest(name=name), "data": {"k": "v"}} for name in "abc"))
    world.run()

    world.edit("b", data={"k": "w"})
    world.run()

    assert world.written == [["update b"]]


def test_invalid_answer_touches_nothing(world: World):
    world.desires(manifest(name="a"), manifest(name="b", apply_order="x"))

    assert isinstance(world.run(), InvalidAnswer)

    assert (world.written, world.phases) == ([], {})
    assert (world.status["state"], world.ready["reason"]) == ("Error", "InvalidAnswer")


def test_object_that_is_no_longer_desired_goes_once_all_others_are_ready(world: World):
    world.desires(manifest(name="a"), deployment())
    world.run()
    world.desires(deployment())
    world.run()
    assert (world.written, world.phases["a"]) == ([], "ScheduledForDeletion")

    world.edit("web", status=AVAILABLE)
    world.run()
    assert world.written == [["delete a"]]

    world.run()
    assert (world.phases, world.status["state"]) == ({"web": "Ready"}, "Ready")


def test_object_that_somebody_took_over_is_left_alone_and_forgotten(world: World):
    world.desires(manifest(name="a"))
    world.run()
    world.edit("a", metadata={"name": "a", "namespace": "default"})

    world.desires()
    world.run()

    assert (world.written, world.phases, [key.name for key in world.objects]) == ([], {}, ["a"])


def test_object_that_may_not_be_adopted_fails_the_pass(world: World):
    world.objects[key("a")] = manifest(name="a", namespace="default")
    world.desires(manifest(name="a", adoption_policy="never"))

    assert isinstance(world.run(), NameTaken)

    assert (world.written, world.ready["reason"]) == ([], "NameTaken")


def test_write_that_fails_stops_the_wave_and_keeps_what_was_written(world: World):
    world.desires(manifest(name="a"), manifest("Service", "b"))
    world.run()
    world.desires(manifest(name="a"), manifest("Service", "b"), manifest(name="c"))
    world.controller = a_component_controller(policies={"adoption": "Always"})
    result = world._result

    def blind(step: object) -> object:
        return [None] if type(step).__name__ == "ReadObjects" else result(step)  # type: ignore[arg-type]

    world.objects[key("c")] = manifest(name="c", namespace="default")
    world._result = blind  # type: ignore[method-assign]
    failure = world.run()

    assert isinstance(failure, WritesFailed)
    assert world.phases == {"a": "Ready", "b": "Ready", "c": "ScheduledForApplication"}


@pytest.mark.parametrize(
    ("failure", "state", "reason"),
    [
        (Unavailable("no gateway"), "Pending", "Retrying"),
        (HookThrottled(5, fault=HookThrottled.fault, message="later"), "Pending", "Retrying"),
        (Conflict("changed"), "Processing", "Processing"),
        (InvalidAnswer("children", "must be a list"), "Error", "InvalidAnswer"),
    ],
)
def test_failure_of_the_hook_is_told_in_the_status(world: World, failure: Exception, state: str, reason: str):
    world.failure = failure  # type: ignore[assignment]

    assert world.run() is failure

    assert (world.status["state"], world.ready["reason"]) == (state, reason)


def test_component_that_is_not_ready_in_time_is_in_error_and_may_become_ready(world: World):
    world.desires(deployment())
    world.run()
    world.run(after_seconds=61)
    assert (world.status["state"], world.ready["reason"]) == ("Error", "Timeout")

    world.edit("web", status=AVAILABLE)
    world.run()

    assert (world.status["state"], "processingSince" in world.status) == ("Ready", False)


def test_failed_job_fails_the_component_at_once(world: World):
    world.desires(manifest("Job", "j", api_version="batch/v1"), manifest(name="next", apply_order="1"))
    world.run()

    world.edit("j", status={"conditions": [{"type": "Failed", "status": "True", "message": "too often"}]})
    world.run()

    assert (world.ready["reason"], world.ready["message"]) == ("DependentFailed", "Job default/j: too often")
    assert "next" not in [each.name for each in world.objects]


def test_purged_object_is_gone_after_its_wave_and_not_made_again(world: World):
    world.desires(manifest(name="once", purge_order="0"), manifest(name="stays", apply_order="1"))
    world.run()
    assert (world.written[-1], world.phases["once"], world.phases["stays"]) == (["delete once"], "Completing", "ScheduledForApplication")

    world.run()
    assert (world.phases, world.status["state"]) == ({"once": "Completed", "stays": "Ready"}, "Ready")

    world.run()
    assert world.written == []


def test_missing_namespace_is_created_and_stays_unmarked(world: World):
    world.desires(manifest(name="a", namespace="elsewhere"))

    world.run()

    assert world.written == [["create elsewhere"], ["create a"]]
    assert unstructured.labels(world.objects[key("elsewhere", kind="Namespace", namespace="")]) == {}
    assert world.phases == {"a": "Ready"}


def test_missing_namespace_is_not_created_where_the_policy_says_so(world: World):
    world.controller = a_component_controller(policies={"missingNamespaces": "DoNotCreate"})
    world.desires(manifest(name="a", namespace="elsewhere"))

    world.run()

    assert world.written == [["create a"]]


def test_suspended_component_is_left_as_it_is(world: World):
    world.controller = a_component_controller(parentFields={"suspend": ".spec.suspend"})
    world.desires(manifest(name="a"))
    world.run()
    world.component = {**(world.component or {}), "spec": {"suspend": True}}
    world.desires()

    world.run()

    assert (world.written, world.phases, world.ready["reason"]) == ([], {"a": "Ready"}, "Suspended")


def test_hook_is_told_the_revision_and_the_digest(world: World):
    world.desires()
    world.run()
    first = world.asked
    world.component = {**(world.component or {}), "spec": {"changed": True}}
    world.run()

    assert (first["revision"], world.asked["revision"]) == (1, 2)
    assert first["digest"] != world.asked["digest"]
    assert (first["namespace"], first["name"]) == ("default", "app")


def test_kind_that_does_not_store_the_inventory_is_found_out_before_anything_is_created(world: World):
    world.drops_inventory = True
    world.desires(manifest(name="a"))

    failure = world.run()

    assert "does not store status.inventory" in str(failure)
    assert world.written == []


# -- deletion ----------------------------------------------------------------------------------------------------------


def test_deleted_component_goes_after_its_objects(world: World):
    world.desires(manifest("Namespace", "n"), manifest(name="a", namespace="n"))
    world.run()
    world.delete()

    world.run()
    assert (world.written, world.status["state"]) == ([["delete a"]], "Deleting")
    world.run()
    assert world.written == [["delete n"]]
    world.run()

    assert (world.component, world.objects) == (None, {})


def test_deletion_waits_for_objects_that_take_their_time(world: World):
    world.lasting = True
    world.desires(manifest(name="a"))
    world.run()
    world.delete()
    world.run()
    world.run()
    assert (world.written, world.phases, world.ready["reason"]) == ([], {"a": "Deleting"}, "DeletionProcessing")

    world.vanish()
    world.run()

    assert world.component is None


def test_deletion_is_blocked_before_anything_is_deleted(world: World):
    world.desires(crd(), manifest(name="a"))
    world.run()
    world.delete()
    world.foreign = ["Widget theirs/w"]

    world.run()

    assert (world.written, world.status["state"], world.ready["reason"]) == ([], "Deleting", "DeletionBlocked")
    assert world.ready["message"] == "Deletion is blocked by Widget theirs/w"
    assert [step.reason for step in world.steps if isinstance(step, RecordEvent)] == ["DeletionBlocked"]


@pytest.mark.parametrize(("seconds", "look"), [(0, 1.05), (5, 2), (30, 3), (100, 11)])
def test_blocked_deletion_is_looked_at_later_and_later(world: World, seconds: float, look: float):
    world.desires(crd())
    world.run()
    world.delete()
    world.foreign = ["Widget theirs/w"]

    world.run(after_seconds=seconds)

    assert world.resync_seconds == look


def test_deletion_is_blocked_by_finalizers_of_others(world: World):
    world.desires(manifest(name="a"))
    world.run()
    world.delete(finalizers=[f"{PREFIX}/finalizer", "x.io/y"])

    world.run()

    assert (world.written, world.ready["message"]) == ([], "Deletion is blocked by finalizer x.io/y")


def test_type_that_is_merely_redundant_is_not_deleted_while_others_use_it(world: World):
    world.desires(crd(), manifest(name="a"))
    world.run()
    world.edit(
        "widgets.example.com", status={"conditions": [{"type": each, "status": "True"} for each in ("Established", "NamesAccepted")]}
    )
    world.desires(manifest(name="a"))
    world.foreign = ["Widget theirs/w"]

    world.run()

    assert world.written == []
    assert "is blocked by Widget theirs/w" in str(world.ready["message"])


def test_orphaned_object_stays_when_its_component_goes(world: World):
    world.desires(manifest(name="a", delete_policy="orphan"), manifest(name="b"))
    world.run()
    world.delete()
    world.run()
    world.run()

    assert (world.component, [each.name for each in world.objects]) == (None, ["a"])


def test_deletion_counts_as_guarded_only_while_the_component_stays(world: World):
    world.desires(manifest(name="a"))
    world.run()
    world.desires()
    world.run()
    [redundant] = [action.reason for step in world.steps if isinstance(step, WriteChildren) for action in step.plan]

    assert redundant == "no longer desired"
