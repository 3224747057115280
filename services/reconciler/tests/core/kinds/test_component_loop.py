"""The loop over a component: in which state each situation leaves it, and when it is looked at again."""

from collections.abc import Callable

import pytest
from component_world import World, a_component_controller
from components import PREFIX, manifest

from metaloop.common.errors import Conflict, InvalidAnswer, MetaloopError, Unavailable
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.steps import CountPass, RecordEvent, Resync
from metaloop.reconciler.errors import RetryAsked

AVAILABLE: JsonObject = {
    "observedGeneration": 1,
    **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1),
    "conditions": [{"type": "Available", "status": "True"}],
}
WEB = manifest("Deployment", "web", api_version="apps/v1")
ASKED = RetryAsked(3, "generate hook: not yet")
INVALID = InvalidAnswer("children", "must be a list")


def said(world: World) -> tuple[object, object, object]:
    """The state, the reason and the status of the condition."""
    return world.status["state"], world.ready["reason"], world.ready["status"]


def a_world(**spec: JsonValue) -> World:
    """A component that waits for a Deployment."""
    world = World(controller=a_component_controller(**spec))
    world.desires(WEB)
    return world


def with_spec(world: World, **spec: JsonValue) -> World:
    """The world after somebody wrote this spec."""
    world.component = {**(world.component or {}), "spec": spec}
    return world


def waiting(world: World) -> None:
    """Its objects are not ready."""
    world.run()


def ready(world: World) -> None:
    """Its objects are ready."""
    world.run()
    world.edit("web", status=AVAILABLE)
    world.run()


def failing(error: MetaloopError) -> Callable[[World], None]:
    """The hook fails after the objects were created."""

    def fail(world: World) -> None:
        world.run()
        world.failure = error

    return fail


SITUATIONS: dict[str, tuple[Callable[[World], None], float, tuple[str, str, str]]] = {
    # what it is about: (how it came, how many seconds ago, the state, the reason and the condition)
    "not ready": (waiting, 1, ("Processing", "Processing", "Unknown")),
    "not ready for too long": (waiting, 61, ("Error", "Timeout", "False")),
    "ready": (ready, 1, ("Ready", "Ready", "True")),
    "ready for longer than the timeout": (ready, 999, ("Ready", "Ready", "True")),
    "a retry is due": (failing(ASKED), 1, ("Pending", "Retrying", "Unknown")),
    "a retry is due for too long": (failing(ASKED), 61, ("Pending", "Timeout", "Unknown")),
    "a peer is away": (failing(Unavailable("away")), 1, ("Pending", "Retrying", "Unknown")),
    "an attempt failed": (failing(INVALID), 1, ("Error", "InvalidAnswer", "False")),
    "attempts fail for too long": (failing(INVALID), 61, ("Error", "Timeout", "False")),
    "somebody else wrote": (failing(Conflict("changed")), 1, ("Processing", "Processing", "Unknown")),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_situation_decides_about_state_and_reason(situation: str):
    begin, seconds, expected = SITUATIONS[situation]
    world = a_world()
    begin(world)

    world.run(after_seconds=seconds)

    assert said(world) == expected


def test_component_whose_every_attempt_fails_is_in_error_and_never_timed_out():
    world = a_world()
    world.failure = INVALID
    world.run()

    world.run(after_seconds=999)

    assert said(world) == ("Error", "InvalidAnswer", "False")


def test_timeout_begins_anew_with_each_change_of_the_component():
    world = with_spec(a_world(), size=1)
    world.run()
    world.run(after_seconds=61)
    assert said(world)[1] == "Timeout"

    with_spec(world, size=2)
    world.run(after_seconds=1)

    assert said(world) == ("Processing", "Processing", "Unknown")


def test_timeout_begins_anew_when_a_ready_component_ceases_to_be_ready():
    world = a_world()
    ready(world)
    world.edit("web", status={})

    world.run(after_seconds=999)
    assert said(world)[1] == "Processing"

    world.run(after_seconds=61)
    assert said(world)[1] == "Timeout"


def test_timed_out_component_is_looked_at_further_and_may_become_ready():
    world = a_world()
    world.run()
    world.run(after_seconds=61)
    assert world.resync_seconds == 2

    world.edit("web", status=AVAILABLE)
    world.run()

    assert said(world) == ("Ready", "Ready", "True")


def test_retry_that_is_asked_for_comes_when_the_answer_says():
    world = a_world()
    world.failure = ASKED

    failure = world.run()

    assert isinstance(failure, RetryAsked)
    assert failure.after_seconds == 3


def test_intervals_of_the_component_prevail():
    world = a_world(timeout="1h", parentFields={"timeout": ".spec.timeout", "requeueInterval": ".spec.every"})
    with_spec(world, timeout="5s", every="20s")
    world.run()
    world.run(after_seconds=6)
    assert said(world)[1] == "Timeout"

    world.edit("web", status=AVAILABLE)
    world.run()

    assert world.resync_seconds == 20


def test_invalid_interval_of_the_component_is_told():
    world = with_spec(a_world(parentFields={"timeout": ".spec.timeout"}), timeout="soon")

    world.run()

    assert said(world) == ("Error", "InvalidParent", "False")


# -- suspended ---------------------------------------------------------------------------------------------------------


def suspended() -> World:
    """A component that was waiting when it was suspended."""
    world = a_world(parentFields={"suspend": ".spec.suspend"})
    world.run()
    return with_spec(world, suspend=True)


def test_suspended_component_is_asked_about_no_hook_and_looked_at_no_more():
    world = suspended()

    world.run(after_seconds=999)

    assert said(world) == ("Pending", "Suspended", "Unknown")
    assert (world.requests, [step for step in world.steps if isinstance(step, Resync)]) == ({}, [])


def test_suspended_component_keeps_its_inventory_and_its_digest():
    world = suspended()
    before = world.status

    world.run()

    assert [world.status[name] for name in ("inventory", "processingDigest", "revision")] == [
        before[name] for name in ("inventory", "processingDigest", "revision")
    ]


def test_component_that_is_no_longer_suspended_goes_on_as_a_changed_one():
    world = suspended()
    world.run()
    with_spec(world, suspend=False)

    world.run(after_seconds=999)

    assert (said(world)[0], world.status["revision"]) == ("Processing", 2)


def test_suspended_component_is_deleted_like_any_other():
    world = suspended()
    world.run()
    world.delete()

    world.run()
    world.run()

    assert (world.component, world.objects) == (None, {})


# -- reapply -----------------------------------------------------------------------------------------------------------


def deployed(**spec: JsonValue) -> World:
    """A component whose one object was just applied."""
    world = World(controller=a_component_controller(**spec))
    world.desires({**manifest(name="a"), "data": {"k": "v"}})
    world.run()
    return world


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        ({}, 600),
        ({"reapplyInterval": "1m"}, 60),
        ({"reapplyInterval": "1m", "requeueInterval": "20s"}, 20),
        ({"reapplyInterval": "1m", "policies": {"update": "Recreate"}}, 600),
        ({"reapplyInterval": "1m", "policies": {"reconcile": "Once"}}, 600),
    ],
)
def test_component_is_looked_at_when_the_first_object_is_due_for_another_write(spec: dict[str, JsonValue], seconds: float):
    assert deployed(**spec).resync_seconds == seconds


def test_object_is_written_again_after_the_reapply_interval():
    world = deployed(reapplyInterval="1m")
    world.run(after_seconds=59)
    assert world.written == []

    world.run(after_seconds=1)
    assert world.written == [["update a"]]

    world.run(after_seconds=1)
    assert (world.written, world.resync_seconds) == ([], 59)


def test_reapply_interval_of_the_component_prevails():
    world = deployed(parentFields={"reapplyInterval": ".spec.reapply"})
    with_spec(world, reapply="1m")
    world.run()

    world.run(after_seconds=60)

    assert world.written == [["update a"]]


def test_write_that_is_known_to_change_nothing_counts_as_done():
    """Otherwise it would be due with each pass."""
    world = deployed(reapplyInterval="1m")
    world.skips_writes = True

    world.run(after_seconds=60)

    assert (world.status["state"], world.resync_seconds) == ("Ready", 60)


# -- events and counts -------------------------------------------------------------------------------------------------


def events(world: World) -> list[tuple[str, str]]:
    """The types and reasons of the events of the last pass."""
    return [(step.type, step.reason) for step in world.steps if isinstance(step, RecordEvent)]


def counted(world: World) -> CountPass:
    """How the last pass was counted."""
    [found] = [step for step in world.steps if isinstance(step, CountPass)]
    return found


def test_event_tells_of_each_new_state_and_of_nothing_else():
    world = a_world()
    world.run()
    assert events(world) == [("Normal", "Processing")]
    world.run(after_seconds=1)
    assert events(world) == []
    world.run(after_seconds=61)
    assert events(world) == [("Warning", "Timeout")]

    world.edit("web", status=AVAILABLE)
    world.run()

    assert events(world) == [("Normal", "Ready")]


def test_error_that_the_driver_tells_of_is_not_told_twice():
    world = a_world()
    world.failure = INVALID

    world.run()

    assert events(world) == []


def test_component_may_ask_for_no_events():
    world = a_world()
    component = world.component or {}
    world.component = {**component, "metadata": {**unstructured.metadata(component), "annotations": {f"{PREFIX}/disable-events": "true"}}}

    world.run()

    assert events(world) == []


def test_each_pass_is_counted_once_by_its_state_and_reason():
    world = a_world()
    world.run()
    assert counted(world) == CountPass(state="Processing", reason="Processing", is_change=True)

    world.failure = INVALID
    world.run()
    assert counted(world) == CountPass(state="Error", reason="InvalidAnswer", is_change=True)


def test_time_until_a_component_is_ready_is_counted_once():
    world = a_world()
    world.run()
    world.edit("web", status=AVAILABLE)

    world.run(after_seconds=5)
    assert counted(world) == CountPass(state="Ready", reason="Ready", is_change=True, ready_after_seconds=5)

    world.run()
    assert counted(world) == CountPass(state="Ready", reason="Ready", is_change=False)


def test_deletion_is_counted_like_any_pass():
    world = a_world()
    world.run()
    world.delete()

    world.run()

    assert counted(world) == CountPass(state="Deleting", reason="DeletionProcessing", is_change=True)
