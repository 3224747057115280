"""One sync as a list of steps: which steps it takes, in which order, from which results, and what ends it."""

from dataclasses import replace

import pytest
from builders import CONFIG_MAPS, LABELS, THINGS, a_controller, a_parent, config_map, decorated, group, observed, stored
from rolling import existing, observed_gadgets, revision, rolling_parent
from rolling_sync import gadget_hook
from scripted import Hook, Played, Script, play

from metaloop.common.api.composite import parse_composite
from metaloop.common.api.revision import kind_labels
from metaloop.common.errors import Conflict, InvalidAnswer, InvalidSpec, LeaseLost, MetaloopError, Unavailable
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import ObservedGroup, Related
from metaloop.reconciler.core.apply.last_applied import new_child
from metaloop.reconciler.core.effects import Done, Effects
from metaloop.reconciler.core.hooks.customize import fingerprint_of
from metaloop.reconciler.core.kinds.composite import COMPOSITE
from metaloop.reconciler.core.kinds.decorator import DECORATOR
from metaloop.reconciler.core.model import Observed, UpdateChild
from metaloop.reconciler.core.steps import CallHook, Step, WriteRevisions
from metaloop.reconciler.errors import DeletionHeldBack, Failure, HookThrottled, WritesFailed

FINALIZER = "metacontroller.io/compositecontroller-things"
AT_REST: JsonObject = {"observedGeneration": 3}
BEFORE_THE_HOOK = ["parent: finalizer is as it should be", "choose how to apply"]


def wants(*names: str, **rest: JsonValue) -> Hook:
    """A hook that desires these ConfigMaps."""
    return lambda _: {"children": [config_map(name) for name in names], **rest}


def child(name: str, *, value: str = "value") -> JsonObject:
    """A ConfigMap that an earlier sync created."""
    return stored(new_child(config_map(name, data={"key": value}, namespace="default"), parent=a_parent()))


def parent_with(*children: JsonObject, controller: JsonObject | None = None, **parts: JsonValue) -> Observed:
    """A parent with these candidates for children, and with its status written."""
    metadata = {**unstructured.metadata(a_parent()), **unstructured.child_object(dict(parts), "metadata")}
    parent = {**a_parent(status=AT_REST), **parts, "metadata": metadata}
    seen = observed(group(CONFIG_MAPS, *children), parent=parent)
    return replace(seen, controller=parse_composite(controller)) if controller is not None else seen


def with_hooks(*names: str) -> JsonObject:
    """A controller with these hooks beside sync."""
    controller = a_controller()
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    for name in names:
        hooks[name] = {"webhook": {"url": f"http://hook.example/{name}"}}
    return controller


def composite(seen: Observed, script: Script | None = None) -> Played:
    """The sync of a composite's parent."""
    return play(seen, COMPOSITE, script)


def failures_of(played: Played) -> list[str]:
    """The failed writes of a sync, each with its object."""
    assert isinstance(played.failure, WritesFailed)
    return [each.what for each in played.failure.failures]


# -- the order of the steps --------------------------------------------------------------------------------------------


def test_fresh_parent_has_its_children_created_and_then_its_status_written():
    played = composite(parent_with(status={}), Script(hook=wants("a", "b")))

    assert played.lines == [
        *BEFORE_THE_HOOK,
        "call sync",
        "children: create a, create b",
        "parent: status",
        "parent: metadata is as it should be",
    ]
    assert played.failure is None


def test_parent_at_rest_is_asked_about_and_nothing_is_to_write():
    played = composite(parent_with(child("a")), Script(hook=wants("a")))

    assert played.lines == [*BEFORE_THE_HOOK, "call sync", "parent: status is as it should be", "parent: metadata is as it should be"]


def test_answer_without_children_deletes_those_that_are_there():
    played = composite(parent_with(child("a"), child("b")))

    assert "children: delete a, delete b" in played.lines


def test_deletions_stand_before_other_writes():
    played = composite(parent_with(child("a"), child("b", value="old")), Script(hook=wants("b", "c")))

    assert "children: delete a, update b, create c" in played.lines


def test_finalizer_is_added_before_the_hook_is_asked_and_shown_to_it():
    played = composite(parent_with(controller=with_hooks("finalize")))

    assert played.lines[:3] == ["parent: finalizer", "choose how to apply", "call sync"]
    assert unstructured.finalizers(unstructured.child_object(played.asked[0], "parent")) == [FINALIZER]


def test_parent_that_goes_is_finalized_and_then_let_go():
    seen = parent_with(
        child("a"), controller=with_hooks("finalize"), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [FINALIZER]}
    )

    played = composite(seen, Script(hook=lambda _: {"finalized": True}))

    assert played.lines == [*BEFORE_THE_HOOK, "call finalize", "parent: finalizer"]


def test_orphans_are_adopted_before_the_hook_is_shown_them():
    orphan = stored(config_map("a", namespace="default"))

    played = composite(parent_with(orphan), Script(hook=wants("a")))

    assert played.lines[:4] == [*BEFORE_THE_HOOK, "claim: adopt a", "call sync"]
    children = unstructured.child_object(played.asked[0], "children")
    shown = unstructured.child_object(unstructured.child_object(children, "ConfigMap.v1"), "a")
    assert controller_ref(shown) is not None


def test_released_child_is_shown_to_no_hook():
    other = stored(config_map("a", labels={"app": "other"}), owner=a_parent())

    played = composite(parent_with(other))

    assert "claim: release a" in played.lines
    assert played.asked[0]["children"] == {"ConfigMap.v1": {}}


def test_decorated_object_takes_no_status_unless_the_hook_answers_one():
    played = play(decorated(group()), DECORATOR, Script(hook=lambda _: {"attachments": [config_map("a")]}))

    assert played.lines == [*BEFORE_THE_HOOK, "call sync", "children: create a", "parent: metadata is as it should be"]


def test_decorated_object_gets_its_status_before_its_labels():
    played = play(decorated(group()), DECORATOR, Script(hook=lambda _: {"status": {"on": True}, "labels": {"on": "yes"}}))

    assert played.lines[-2:] == ["parent: status", "parent: metadata"]


# -- what ends a sync early --------------------------------------------------------------------------------------------


def test_parent_that_vanished_is_not_asked_about():
    played = composite(parent_with(controller=with_hooks("finalize")), Script(edited=lambda _edit, _parent: None))

    assert (played.lines, played.failure) == (["parent: finalizer"], None)


def test_parent_that_nobody_selects_is_not_asked_about():
    controller = a_controller()
    parent_rule = unstructured.child_object(unstructured.child_object(controller, "spec"), "parentResource")
    parent_rule["labelSelector"] = {"matchLabels": {"served": "yes"}}

    played = composite(parent_with(controller=controller))

    assert (played.lines, played.failure) == (["parent: finalizer is as it should be"], None)


def test_parent_that_vanished_after_its_status_is_left_alone():
    played = composite(parent_with(status={}), Script(edited=lambda edit, parent: None if edit.name == "Status" else parent))

    assert (played.lines[-1], played.failure) == ("parent: status", None)


BUSY = HookThrottled(5.0, fault=Fault.CIRCUIT_OPEN, message="the circuit is open")
ENDS: dict[str, tuple[str, MetaloopError]] = {
    # what it shows: (the step that fails, why)
    "the finalizer can't be written": ("parent: finalizer", Conflict("changed meanwhile")),
    "there is no such strategy": ("choose how to apply", InvalidSpec("metadata.annotations", "must be one of two")),
    "the parent is going": ("claim: adopt orphan", Conflict("deleted meanwhile")),
    "the customize hook is busy": ("call customize", BUSY),
    "the watcher is away": ("subscribe to 1 queries", Unavailable("no watcher")),
    "the sync hook is busy": ("call sync", BUSY),
    "the lease ran out": ("children: delete unwanted, update orphan, create new", LeaseLost("too late")),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_step_that_fails_is_the_last_one(end: tuple[str, MetaloopError]):
    step, failure = end
    orphan = stored(config_map("orphan", namespace="default"))
    seen = parent_with(orphan, child("unwanted"), controller=with_hooks("finalize", "customize"))
    rules: JsonObject = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "names": ["shared"]}]}

    played = composite(seen, Script(hook=wants("orphan", "new"), rules=lambda _: rules, failing={step: failure}))

    assert (played.lines[-1], played.failure) == (step, failure)


def test_claim_that_fails_in_part_ends_the_sync_with_all_that_failed():
    orphan = stored(config_map("orphan", namespace="default"))
    failed = Failure(what="adopt ConfigMap default/orphan", error=Conflict("changed meanwhile"))

    played = composite(parent_with(orphan), Script(claimed=Effects(failures=(failed,))))

    assert played.lines[-1] == "claim: adopt orphan"
    assert failures_of(played) == ["adopt ConfigMap default/orphan"]


def test_answer_that_does_not_fit_its_controller_writes_nothing():
    played = composite(
        parent_with(child("a")), Script(hook=lambda _: {"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]})
    )

    assert played.lines[-1] == "call sync"
    assert isinstance(played.failure, InvalidAnswer)


# -- failures that do not end a sync -----------------------------------------------------------------------------------


def refusal_of(what: str) -> Failure:
    """A write to a child that failed."""
    return Failure(what=what, error=Conflict("refused"))


def test_status_is_written_though_a_child_failed():
    played = composite(parent_with(status={}), Script(hook=wants("a"), written=Effects(failures=(refusal_of("create a"),))))

    assert played.lines[-3:] == ["children: create a", "parent: status", "parent: metadata is as it should be"]
    assert failures_of(played) == ["create a"]


def test_status_that_fails_after_a_child_failed_is_named_beside_it():
    script = Script(hook=wants("a"), written=Effects(failures=(refusal_of("create a"),)), failing={"parent: status": Conflict("changed")})

    played = composite(parent_with(status={}), script)

    assert failures_of(played) == ["create a", "write the parent's status"]
    assert played.lines[-1] == "parent: metadata is as it should be"


def test_lease_that_runs_out_over_the_status_is_no_failure_of_the_status():
    lost = LeaseLost("too late")

    played = composite(parent_with(status={}), Script(failing={"parent: status": lost}))

    assert (played.lines[-1], played.failure) == ("parent: status", lost)


def test_finalizer_stays_while_a_child_could_not_be_written():
    parent_rule: JsonObject = {"labelSelector": {"matchLabels": {"served": "yes"}}}
    controller = with_hooks("finalize")
    unstructured.child_object(unstructured.child_object(controller, "spec"), "parentResource").update(parent_rule)
    seen = parent_with(child("a"), controller=controller, metadata={"finalizers": [FINALIZER]})

    played = composite(seen, Script(hook=lambda _: {"finalized": True}, written=Effects(failures=(refusal_of("delete a"),))))

    assert played.lines[-3:] == ["children: delete a", "parent: status is as it should be", "parent: metadata is as it should be"]


def test_deletion_that_a_guard_holds_back_lets_the_rest_be_done():
    held = Failure(what="delete children", error=DeletionHeldBack("too many"))

    played = composite(parent_with(child("a"), status={}), Script(hook=wants("b"), written=Effects(failures=(held,))))

    assert played.lines[-3:] == ["children: delete a, create b", "parent: status", "parent: metadata is as it should be"]
    assert failures_of(played) == ["delete children"]
    assert isinstance(played.failure, WritesFailed)
    assert played.failure.fault is Fault.DELETION_HELD_BACK


# -- resyncs and unknown keys ------------------------------------------------------------------------------------------


def test_resync_is_asked_for_before_anything_is_written():
    played = composite(parent_with(), Script(hook=wants("a", resyncAfterSeconds=2.5)))

    assert played.lines[2:5] == ["call sync", "resync after 2.5 s", "children: create a"]


def test_resync_counts_though_the_answer_fits_no_child():
    played = composite(
        parent_with(), Script(hook=lambda _: {"resyncAfterSeconds": 2, "children": [config_map("a", labels={"app": "other"})]})
    )

    assert played.lines[-1] == "resync after 2 s"
    assert isinstance(played.failure, InvalidAnswer)


def test_keys_that_nobody_reads_are_noted():
    played = composite(parent_with(), Script(hook=wants(childen=[], extra=1)))

    assert "unknown keys: childen, extra" in played.lines


# -- related objects ---------------------------------------------------------------------------------------------------

RULE: JsonObject = {"apiVersion": "v1", "resource": "configmaps", "names": ["shared"]}
SHARED = stored(config_map("shared", namespace="default"))
FOUND = Related(fingerprint="", groups=[ObservedGroup(info=CONFIG_MAPS, objects=[SHARED])])


def rules(*rules: JsonObject) -> Hook:
    """A customize hook with these rules."""
    return lambda _: {"relatedResources": [*rules]}


def test_related_objects_are_found_after_the_claim_and_before_the_sync_hook():
    played = composite(parent_with(controller=with_hooks("customize")), Script(rules=rules(RULE), related=FOUND))

    assert played.lines[2:5] == ["call customize", "subscribe to 1 queries", "call sync"]
    assert played.asked[1]["related"] == {"ConfigMap.v1": {"shared": SHARED}}


def test_customize_hook_is_asked_once_for_the_same_parent():
    seen = parent_with(controller=with_hooks("customize"))
    remembered = replace(seen, related=Related(fingerprint=fingerprint_of(seen), groups=FOUND.groups))

    played = composite(remembered)

    assert [step.hook.name for step in played.steps if isinstance(step, CallHook)] == ["sync"]
    assert played.asked[0]["related"] == {"ConfigMap.v1": {"shared": SHARED}}


def test_customize_hook_is_asked_again_for_a_parent_that_changed():
    seen = replace(parent_with(controller=with_hooks("customize")), related=Related(fingerprint="of another"))

    assert composite(seen).lines[2:4] == ["call customize", "subscribe to 0 queries"]


def test_rules_out_of_reach_are_followed_for_nobody():
    elsewhere: JsonObject = {"apiVersion": "v1", "resource": "configmaps", "namespace": "elsewhere"}

    played = composite(parent_with(controller=with_hooks("customize")), Script(rules=rules(elsewhere), related=FOUND))

    assert played.lines[-2:] == ["subscribe to 1 queries", "subscribe to 0 queries for now"]
    assert isinstance(played.failure, InvalidAnswer)


def test_rules_that_can_not_be_judged_yet_are_followed_under_no_fingerprint():
    """The next sync asks again. Until then, the watcher marks the parent once the resource is served."""
    unknown = Related(fingerprint="", unknown=[ResourceId("v1", "secrets")])
    secrets: JsonObject = {"apiVersion": "v1", "resource": "secrets"}

    played = composite(parent_with(controller=with_hooks("customize")), Script(rules=rules(secrets), related=unknown))

    assert played.lines[-2:] == ["subscribe to 1 queries", "subscribe to 1 queries for now"]


# -- rollouts ----------------------------------------------------------------------------------------------------------


def a_rollout(*, is_orphan: bool = False) -> Observed:
    """A parent whose template changed to v2. Its three Gadgets are ready and still have v1."""
    seen = observed_gadgets(existing("a"), existing("b"), existing("c"), parent=rolling_parent("v2"))
    labels: JsonObject = {**LABELS, **kind_labels(THINGS.id)}
    return replace(seen, revisions=(revision("v1", "a", "b", "c", is_orphan=is_orphan, metadata={"labels": labels}),))


def test_hook_is_asked_about_each_revision_and_the_move_written_down_first():
    played = composite(a_rollout(), Script(hook=gadget_hook))

    assert played.lines[2] == "call sync, 2 times"
    [revisions, children] = played.lines[3:5]
    assert revisions.startswith("revisions: create things.example.com-")
    assert revisions.endswith(", update things.example.com-v1")
    assert children == "children: update a"


def test_orphaned_revision_is_adopted_after_the_children_and_before_the_hook():
    seen = a_rollout(is_orphan=True)
    orphan = stored(config_map("orphan", namespace="default"))
    seen = replace(seen, groups=(*seen.groups, group(CONFIG_MAPS, orphan)))

    played = composite(seen, Script(hook=gadget_hook))

    assert played.lines[2:5] == ["claim: adopt orphan", "claim: adopt things.example.com-v1", "call sync, 2 times"]


def test_revision_that_can_not_be_written_leaves_every_child_alone():
    failed = WritesFailed([refusal_of("update ControllerRevision")])

    class Failing(Script):
        """A script in which revisions can't be written."""

        def result(self, step: Step) -> object:
            """The result of a step; for revisions, the failure."""
            if isinstance(step, WriteRevisions):
                raise failed
            return super().result(step)

    played = composite(a_rollout(), Failing(hook=gadget_hook))

    assert isinstance(played.steps[-1], WriteRevisions)
    assert played.failure is failed


def test_write_that_changed_nothing_has_a_rollout_look_again_at_once():
    """No event follows it, and the rollout may be waiting for nothing else."""
    update = UpdateChild(info=CONFIG_MAPS, obj=child("a"), reason="")
    script = Script(hook=gadget_hook, written=Effects(done=(Done(action=update, is_noop=True),)))

    assert "resync after 0.1 s" in composite(a_rollout(), script).lines
    assert "resync after 0.1 s" not in composite(parent_with(child("a", value="old")), replace(script, hook=wants("a"))).lines
