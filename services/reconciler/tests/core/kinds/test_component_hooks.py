"""Passes over a component with hooks before and after them."""

import pytest
from component_world import World, a_component_controller
from components import NOW, crd, manifest

from metaloop.common.api.hook import LifecycleHookName
from metaloop.common.errors import InvalidAnswer, MetaloopError, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject, JsonValue
from metaloop.reconciler.core.steps import ReportUnknownKeys
from metaloop.reconciler.errors import HookFailed, HookThrottled, RetryAsked

HOOK: JsonObject = {"webhook": {"url": "http://hook.example/"}}
BEFORE: tuple[LifecycleHookName, ...] = ("postRead", "preReconcile")
ALL: tuple[LifecycleHookName, ...] = (*BEFORE, "postReconcile", "preDelete", "postDelete")
BROKEN = HookFailed(hook="x", fault=Fault.STATUS_UNEXPECTED, message="500")


@pytest.fixture
def world() -> World:
    return World(controller=a_component_controller(hooks=dict.fromkeys(ALL, HOOK), retryInterval="7s"))


def hooks_of(world: World) -> list[str]:
    """The hooks that the last pass called, in order."""
    return [*world.requests]


def test_hooks_are_called_around_the_generator(world: World):
    world.desires(manifest(name="a"))

    world.run()

    assert hooks_of(world) == ["postRead", "preReconcile", "generate", "postReconcile"]
    assert world.step_names.index("postReconcile") > world.step_names.index("WriteChildren")


def test_all_hooks_of_a_pass_are_sent_the_same(world: World):
    world.run()

    digest, asked = world.status["processingDigest"], world.requests
    assert [(each["name"], each["digest"], each["revision"], each["references"]) for each in asked.values()] == [("app", digest, 1, [])] * 4


def test_hook_after_the_pass_waits_until_all_objects_are_ready(world: World):
    world.desires(manifest("Deployment", "web", api_version="apps/v1"))

    world.run()

    assert hooks_of(world) == ["postRead", "preReconcile", "generate"]


def test_undeclared_hooks_are_not_called():
    world = World(controller=a_component_controller(hooks={"preDelete": HOOK}))

    world.run()

    assert hooks_of(world) == ["generate"]


@pytest.mark.parametrize("hook", BEFORE)
def test_failing_hook_before_the_generator_stops_the_pass(world: World, hook: str):
    world.desires(manifest(name="a"))
    world.lifecycle[hook] = BROKEN

    assert world.run() is BROKEN

    assert ("generate" in hooks_of(world), world.written) == (False, [])
    assert (world.status["state"], world.ready["reason"], world.ready["message"]) == ("Error", "StatusUnexpected", "X hook: 500")


def test_failing_hook_after_the_pass_keeps_the_component_from_being_ready(world: World):
    world.desires(manifest(name="a"))
    world.lifecycle["postReconcile"] = BROKEN
    assert world.run() is BROKEN
    assert (world.status["state"], world.phases, "appliedGeneration" in world.status) == ("Error", {"a": "Ready"}, False)

    del world.lifecycle["postReconcile"]
    assert world.run() is None

    assert (world.status["state"], world.status["appliedGeneration"]) == ("Ready", 1)


def test_each_hook_may_add_to_the_status(world: World):
    world.desires(status={"url": "u", "by": "generator"})
    world.lifecycle = {hook: {"status": {hook: hook, "by": hook}} for hook in ("postRead", "preReconcile", "postReconcile")}

    world.run()

    stated = {name: world.status.get(name) for name in ("url", "by", "postRead", "preReconcile", "postReconcile")}
    assert stated == {
        "url": "u",
        "by": "postReconcile",
        "postRead": "postRead",
        "preReconcile": "preReconcile",
        "postReconcile": "postReconcile",
    }


def test_status_of_a_hook_is_kept_if_a_later_stage_fails(world: World):
    world.lifecycle["postRead"] = {"status": {"seen": True}}
    world.failure = Unavailable("no gateway")

    world.run()

    assert (world.status["seen"], world.status["state"]) == (True, "Pending")


RETRY: JsonObject = {"retriable": True, "message": "the licence is not there yet"}


@pytest.mark.parametrize(("answer", "seconds"), [(RETRY, 7), ({**RETRY, "retryAfterSeconds": 3}, 3)])
@pytest.mark.parametrize("hook", ["generate", *BEFORE, "postReconcile"])
def test_any_hook_may_ask_to_be_called_again_later(world: World, hook: str, answer: JsonObject, seconds: float):
    world.desires()
    if hook == "generate":
        world.answer = answer
    else:
        world.lifecycle[hook] = answer

    failure = world.run()

    assert isinstance(failure, RetryAsked)
    assert (failure.after_seconds, failure.fault) == (seconds, Fault.RETRY_ASKED)
    assert (world.status["state"], world.ready["reason"]) == ("Pending", "Retrying")
    assert "hook: the licence is not there yet" in str(world.ready["message"])


def test_generator_that_asks_for_a_retry_touches_nothing(world: World):
    world.desires(manifest(name="a"))
    world.run()
    world.answer = RETRY

    world.run()

    assert (world.written, world.phases) == ([], {"a": "Ready"})


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (HookThrottled(None, fault=Fault.WEBHOOK_BUSY, message="429"), 7),
        (HookThrottled(2, fault=Fault.WEBHOOK_BUSY, message="429"), 2),
        (HookThrottled(None, fault=Fault.CIRCUIT_OPEN, message="open"), None),
    ],
)
def test_busy_webhook_that_does_not_say_when_is_asked_after_the_retry_interval(world: World, error: HookThrottled, seconds: float | None):
    world.failure = error

    failure = world.run()

    assert isinstance(failure, HookThrottled)
    assert (failure.after_seconds, failure.fault) == (seconds, error.fault)


@pytest.mark.parametrize(
    "answer",
    [
        {"retriable": "yes"},
        {"retriable": True, "retryAfterSeconds": "soon"},
        {"retriable": True, "message": 1},
        {"status": []},
        {"resyncAfterSeconds": "1"},
    ],
)
@pytest.mark.parametrize("hook", ["generate", "postRead"])
def test_invalid_answer_of_any_hook_touches_nothing(world: World, hook: str, answer: JsonObject):
    world.desires(manifest(name="a"))
    if hook == "generate":
        world.answer = {"children": [], **answer}
    else:
        world.lifecycle[hook] = answer

    assert isinstance(world.run(), InvalidAnswer)

    assert (world.written, world.phases) == ([], {})


def test_unknown_keys_of_a_hook_s_answer_are_reported(world: World):
    world.lifecycle["postRead"] = {"statsu": {}}

    world.run()

    assert [step.keys for step in world.steps if isinstance(step, ReportUnknownKeys)] == [("statsu",)]


def test_hook_may_ask_for_the_next_pass(world: World):
    world.lifecycle["postReconcile"] = {"resyncAfterSeconds": 20}

    world.run()

    assert world.resync_seconds == 20


# -- deletion ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def going(world: World) -> World:
    """A component with one object, being deleted."""
    world.desires(manifest(name="a"))
    world.run()
    world.delete()
    return world


def test_deletion_calls_one_hook_before_and_one_after_it(going: World):
    going.run()
    assert (hooks_of(going), going.written) == (["preDelete"], [["delete a"]])

    going.run()

    assert (hooks_of(going), going.component) == (["preDelete", "postDelete"], None)


@pytest.mark.parametrize("failure", [BROKEN, RetryAsked(3, "preDelete hook: backing up")])
def test_nothing_is_deleted_while_the_hook_before_it_fails(going: World, failure: MetaloopError):
    going.lifecycle["preDelete"] = failure

    assert going.run() is failure

    assert (going.written, len(going.objects)) == ([], 1)
    state = ("DeletionPending", "DeletionRetrying") if isinstance(failure, RetryAsked) else ("Error", "StatusUnexpected")
    assert (going.status["state"], going.ready["reason"]) == state


def test_component_stays_while_the_hook_after_its_deletion_fails(going: World):
    going.lifecycle["postDelete"] = BROKEN
    going.run()
    assert going.run() is BROKEN
    assert (going.status["state"], going.ready["reason"]) == ("Error", "StatusUnexpected")

    del going.lifecycle["postDelete"]
    going.run()

    assert going.component is None


def test_hook_before_the_deletion_comes_before_the_gate(world: World):
    """It may remove what stands in the way."""
    world.desires(crd())
    world.run()
    world.delete()
    world.foreign = ["Widget theirs/w"]

    world.run()

    assert (hooks_of(world), world.ready["reason"]) == (["preDelete"], "DeletionBlocked")


def test_status_that_hooks_state_in_deletion_is_shown(going: World):
    stated: JsonValue = {"backup": "done", "by": NOW.isoformat()}
    going.lifecycle["preDelete"] = {"status": stated}

    going.run()

    assert (going.status["backup"], going.status["state"]) == ("done", "Deleting")
