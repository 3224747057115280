"""What is done about objects that are desired: each policy against each live object, and the order of the waves."""

from dataclasses import replace

import pytest
from components import MARKS, NOW, PREFIX, RULES, TIMESTAMP, api_service, crd, going, live, manifest, target, targets, widget

from metaloop.common.api.policies import AdoptionPolicy, Policies, UpdatePolicy
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import Marks
from metaloop.reconciler.core.component.inventory import Item, managed_types_in, scheduled
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.component.waves import (
    STAGES,
    ObjectPlan,
    Rules,
    after_write,
    due_purges,
    planned,
    stage_of,
    waves_of,
)
from metaloop.reconciler.core.model import ApplyChild, CreateChild, DeleteChild, UpdateChild
from metaloop.reconciler.errors import NameTaken

ANOTHER = Marks(prefix=PREFIX, owner_id="cluster/default/other")
READY_DEPLOYMENT: JsonObject = {
    "observedGeneration": 1,
    "replicas": 1,
    "updatedReplicas": 1,
    "availableReplicas": 1,
    "readyReplicas": 1,
    "conditions": [{"type": "Available", "status": "True"}],
}


def applied(of: Target, **changes: str) -> Item:
    """The item of a target that was applied just now, and is ready."""
    [item] = scheduled({}, [of]).values()
    return replace(item, **{"phase": "Ready", "status": "Current", "last_applied_at": TIMESTAMP, **changes})  # type: ignore[arg-type]


def plan(of: Target, obj: JsonObject | None, item: Item | None = None, rules: Rules = RULES) -> ObjectPlan:
    """What to do about a target."""
    return planned(of, item or applied(of), obj, rules)


# -- one object --------------------------------------------------------------------------------------------------------


def test_absent_object_is_created_with_our_marks():
    done = plan(target(), None)

    assert isinstance(done.action, CreateChild)
    assert done.action.obj == MARKS.on(target().obj, digest=target().digest)
    assert (done.item.phase, done.item.status, done.item.last_applied_at) == ("Creating", "InProgress", TIMESTAMP)


def test_object_that_is_as_it_should_be_is_left_alone():
    done = plan(target(), live(target()))

    assert (done.action, done.item, done.is_ready) == (None, applied(target()), True)


def test_object_that_is_being_deleted_is_waited_for():
    done = plan(target(), going(live(target(), digest="old")))

    assert (done.action, done.item.status, done.item.phase, done.is_ready) == (None, "Terminating", "Ready", False)


def test_object_that_is_not_ready_is_waited_for():
    deployment = target(manifest("Deployment", api_version="apps/v1"))

    done = plan(deployment, live(deployment), applied(deployment, phase="Creating"))

    assert (done.action, done.item.phase, done.item.status, done.is_ready) == (None, "Creating", "InProgress", False)


def test_object_that_ceases_to_be_ready_keeps_its_phase():
    deployment = target(manifest("Deployment", api_version="apps/v1"))

    done = plan(deployment, live(deployment))

    assert (done.item.phase, done.item.status, done.is_ready) == ("Ready", "InProgress", False)


REASONS: dict[str, tuple[JsonObject, Item, str]] = {
    "another digest": (live(target(), digest="old"), applied(target()), "its manifest changed"),
    "never applied": (live(target()), applied(target(), last_applied_at=""), "it was not written for long"),
    "applied long ago": (live(target()), applied(target(), last_applied_at="2026-01-02T11:00:00Z"), "it was not written for long"),
    "applied lately": (live(target()), applied(target(), last_applied_at="2026-01-02T11:00:01Z"), ""),
}


@pytest.mark.parametrize(("obj", "item", "reason"), REASONS.values(), ids=REASONS.keys())
def test_object_is_written_for_a_reason(obj: JsonObject, item: Item, reason: str):
    action = plan(target(), obj, item).action

    assert (action.reason if action else "") == reason


def with_data(value: str) -> Target:
    """A ConfigMap with this value."""
    return target({**manifest(), "data": {"k": value}})


def test_changed_field_is_written_back():
    action = plan(with_data("v"), live(with_data("v"), data={"k": "w"})).action

    assert isinstance(action, UpdateChild)
    assert action.reason == "its field data.k was changed"
    assert action.obj["data"] == {"k": "v"}


def test_changed_field_does_not_matter_if_only_digests_are_compared():
    by_digest = replace(RULES, drift_detection="Digest")

    assert plan(with_data("v"), live(with_data("v"), data={"k": "w"}), rules=by_digest).action is None


@pytest.mark.parametrize("last_applied_at", [TIMESTAMP, "", "2020-01-01T00:00:00Z"])
def test_object_that_is_applied_once_is_not_written_again(last_applied_at: str):
    once = target({**manifest(reconcile_policy="once"), "data": {"k": "v"}})

    assert plan(once, live(once, data={"k": "w"}), applied(once, last_applied_at=last_applied_at)).action is None


def test_object_that_is_applied_once_is_created_again_if_it_vanished():
    assert isinstance(plan(target(manifest(reconcile_policy="once")), None).action, CreateChild)


def test_object_of_a_kind_that_is_not_served_yet_is_waited_for():
    [_, metric] = targets(api_service("m.io", "v1"), manifest("Metric", api_version="m.io/v1"))

    done = plan(metric, None)

    assert (done.action, done.is_ready, done.message) == (None, False, "its kind is not served yet")


@pytest.mark.parametrize("phase", ["ScheduledForCompletion", "Completing", "Completed"])
@pytest.mark.parametrize("obj", [None, live(target())])
def test_purged_object_is_not_made_again(phase: str, obj: JsonObject | None):
    done = plan(target(), obj, applied(target(), phase=phase, status=""))

    assert (done.action, done.item.phase, done.is_ready) == (None, phase, phase == "Completed")


# -- adoption ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "marks", "is_allowed"),
    [
        ("Never", MARKS, True),
        ("Never", None, False),
        ("Never", ANOTHER, False),
        ("IfUnowned", MARKS, True),
        ("IfUnowned", None, True),
        ("IfUnowned", ANOTHER, False),
        ("Always", MARKS, True),
        ("Always", None, True),
        ("Always", ANOTHER, True),
    ],
)
def test_adoption_depends_on_the_policy_and_the_owner(policy: AdoptionPolicy, marks: Marks | None, is_allowed: bool):
    each = target(policies=Policies(adoption=policy))
    obj = live(each, marks=marks)

    if not is_allowed:
        with pytest.raises(NameTaken, match=f"ConfigMap default/a exists and is .*: its adoption policy is {policy}"):
            plan(each, obj)
        return
    done = plan(each, obj)
    assert isinstance(done.action, UpdateChild) is (marks is not MARKS)


def test_adopted_object_gets_our_marks():
    action = plan(target(), live(target(), marks=None)).action

    assert isinstance(action, UpdateChild)
    assert MARKS.ownership(action.obj) == "ours"


def test_object_that_may_not_be_adopted_is_waited_for_while_it_is_being_deleted():
    assert plan(target(), going(live(target(), marks=ANOTHER))).action is None


# -- update policies ---------------------------------------------------------------------------------------------------

UPDATES: list[tuple[UpdatePolicy, type, type, type]] = [
    # policy, an absent object, one that is out of date, one that is adopted
    ("Replace", CreateChild, UpdateChild, UpdateChild),
    ("SsaMerge", ApplyChild, ApplyChild, ApplyChild),
    ("SsaOverride", ApplyChild, ApplyChild, ApplyChild),
    ("Recreate", CreateChild, DeleteChild, UpdateChild),
]


@pytest.mark.parametrize(("policy", "absent", "outdated", "adopted"), UPDATES)
def test_update_policy_decides_how_an_object_is_written(policy: UpdatePolicy, absent: type, outdated: type, adopted: type):
    each = target(policies=Policies(update=policy))

    actions = [plan(each, obj).action for obj in (None, live(each, digest="old"), live(each, marks=None))]

    assert [type(action) for action in actions] == [absent, outdated, adopted]


def test_replacement_has_the_version_and_the_finalizers_of_the_live_object():
    each = target()
    obj = live(each, version="7", digest="old")
    obj["metadata"] = {**unstructured.metadata(obj), "finalizers": ["x/y"]}

    action = plan(each, obj).action

    assert isinstance(action, UpdateChild)
    assert unstructured.resource_version(action.obj) == "7"
    assert unstructured.uid(action.obj) == "uid-of-a"
    assert unstructured.finalizers(action.obj) == ["x/y"]


def test_object_that_is_recreated_is_not_recreated_merely_because_time_passed():
    each = target(policies=Policies(update="Recreate"))

    assert plan(each, live(each), applied(each, last_applied_at="2020-01-01T00:00:00Z")).action is None


# -- after a write -----------------------------------------------------------------------------------------------------


def test_object_without_status_is_ready_as_soon_as_it_is_written():
    done = plan(target(), None)

    after = after_write(done, live(target()), RULES)

    assert (after.is_ready, after.item.phase) == (True, "Ready")


def test_workload_is_not_ready_when_it_was_just_written():
    deployment = target(manifest("Deployment", api_version="apps/v1"))

    after = after_write(plan(deployment, None), live(deployment), RULES)

    assert (after.is_ready, after.item.phase, after.item.status) == (False, "Creating", "InProgress")


def test_workload_is_ready_once_its_status_says_so():
    deployment = target(manifest("Deployment", api_version="apps/v1"))

    done = plan(deployment, live(deployment, status=READY_DEPLOYMENT), applied(deployment, phase="Creating", status="InProgress"))

    assert (done.is_ready, done.item.phase) == (True, "Ready")


def test_recreated_object_is_not_ready_when_it_was_just_deleted():
    each = target(policies=Policies(update="Recreate"))
    outdated = live(each, digest="old")

    assert not after_write(plan(each, outdated), outdated, RULES).is_ready


# -- waves -------------------------------------------------------------------------------------------------------------


def names(*manifests: JsonObject) -> list[list[list[str]]]:
    """The names of the objects by wave and stage."""
    each = targets(*manifests)
    types = managed_types_in(scheduled({}, each))
    return [[[one.key.name for one in wave.stages[stage]] for stage in STAGES] for wave in waves_of(each, types)]


def test_objects_of_equal_order_make_a_wave():
    assert names(manifest(name="a"), manifest(name="b", apply_order="-1"), manifest(name="c")) == [[["b"], [], []], [["a", "c"], [], []]]


def test_api_services_come_late_and_managed_instances_last():
    objects = (widget(), api_service("m.io", "v1"), crd(), manifest(name="a"), manifest("Metric", "m", api_version="m.io/v1"))

    assert names(*objects) == [[["widgets.example.com", "a"], ["v1.m.io"], ["w", "m"]]]


def test_within_a_stage_the_canonical_order_counts():
    objects = (manifest("Deployment", "d", api_version="apps/v1"), manifest(name="c"), manifest("Namespace", "n"))

    assert names(*objects) == [[["n", "c", "d"], [], []]]


def test_order_of_waves_is_that_of_numbers():
    assert names(*(manifest(name=order, apply_order=order) for order in ("10", "-5", "9"))) == [
        [[name], [], []] for name in ("-5", "9", "10")
    ]


def test_stage_of_an_object_depends_on_the_managed_types_alone():
    [definition, instance] = targets(crd(), widget())

    assert stage_of(instance, definition.managed_types) == "managed"
    assert stage_of(instance, ()) == "regular"


# -- purges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("purge_order", "wave", "is_last", "is_due"),
    [("1", 0, False, False), ("1", 1, False, True), ("1", 2, False, True), ("1", 0, True, True), ("-1", 0, False, True)],
)
def test_object_is_purged_after_its_wave_or_at_the_end(purge_order: str, wave: int, is_last: bool, is_due: bool):
    each = target(manifest(purge_order=purge_order))

    due = due_purges([each], {each.key: applied(each)}, wave=wave, is_last=is_last)

    assert due == ([each.key] if is_due else [])


def test_object_without_purge_order_is_never_purged():
    assert due_purges([target()], {target().key: applied(target())}, wave=9, is_last=True) == []


@pytest.mark.parametrize("phase", ["ScheduledForCompletion", "Completing", "Completed"])
def test_object_is_purged_once(phase: str):
    each = target(manifest(purge_order="0"))

    assert due_purges([each], {each.key: applied(each, phase=phase)}, wave=0, is_last=True) == []


def test_time_of_a_write_is_written_as_kubernetes_writes_it():
    assert (RULES.now, RULES.timestamp) == (NOW, TIMESTAMP)
