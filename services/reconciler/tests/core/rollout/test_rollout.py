"""The steps of a rollout: which child moves next, what the rollout waits for, and what is written to revisions."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from builders import CLUSTER_THINGS, CONFIG_MAPS, DYNAMIC_APPLY, EMPTY_ANSWER, config_map
from rolling import (
    NAMES,
    READY,
    answered_by,
    answered_with,
    claimed,
    existing,
    gadget,
    gadgets_of,
    observed_gadgets,
    revision,
    revisions_with,
    rolling_controller,
    rolling_parent,
    rules_of,
)

from metaloop.common.api.revision import claimed_by
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.plan import plan_of
from metaloop.reconciler.core.model import Answer, ChildGroup, DeleteChild, Observed
from metaloop.reconciler.core.rollout.rollout import Rollout, combined_answer, rollout_of, with_condition

GOING = "2026-01-01T00:00:00Z"
NOT_READY: JsonObject = {"conditions": [{"type": "Ready", "status": "False"}]}


def step(observed: Observed, *revisions: JsonObject, answers: dict[str, Answer] | None = None) -> Rollout:
    """The next step of a rollout with these stored revisions. `answers` has unusual answers, by revision."""
    of = revisions_with(observed, revisions)
    return rollout_of(observed, observed.groups, answered_by(observed, of, answers=answers), rules_of(observed, of.unused))


def texts(rollout: Rollout) -> dict[str, str]:
    """The desired text of each child. That of a held child is in brackets."""
    said = {child.name: unstructured.text(unstructured.child_object(child.obj, "spec"), "text") for child in rollout.desired}
    return {child.name: f"[{said[child.name]}]" if child.method == "OnDelete" else said[child.name] for child in rollout.desired}


def follows(rollout: Rollout) -> dict[str, list[str]]:
    """The children of each written revision, in order. A deleted revision has "deleted"."""
    return {
        unstructured.name(action.obj): ["deleted"]
        if isinstance(action, DeleteChild)
        else sorted(child.name for child in claimed_by(action.obj))
        for action in rollout.revisions
    }


def told(rollout: Rollout) -> tuple[JsonValue, JsonValue, JsonValue]:
    """The status, reason and message of the condition."""
    assert rollout.condition["type"] == "Updated"
    return rollout.condition["status"], rollout.condition["reason"], rollout.condition["message"]


V1, V2, V3 = (f"things.example.com-v{number}" for number in (1, 2, 3))


def to_v2(*children: JsonObject, controller: JsonObject | None = None, names: Iterable[str] = NAMES) -> Observed:
    """A parent whose template has just changed to v2."""
    return observed_gadgets(*children, parent=rolling_parent("v2", names=names), controller=controller)


# -- beginning and end -------------------------------------------------------------------------------------------------


def test_all_children_of_a_new_parent_follow_its_first_revision_at_once():
    rollout = step(observed_gadgets())

    [created] = rollout.revisions
    assert claimed_by(created.obj) == claimed("a", "b", "c")
    assert texts(rollout) == {"a": "v1", "b": "v1", "c": "v1"}
    assert told(rollout) == ("True", "OnLatestRevision", f"on latest ControllerRevision {unstructured.name(created.obj)}")


def test_at_rest_nothing_is_written():
    rollout = step(observed_gadgets(existing("a"), existing("b"), existing("c")), revision("v1", "a", "b", "c"))

    assert not rollout.revisions
    assert told(rollout)[:2] == ("True", "OnLatestRevision")


def test_first_child_of_the_latest_answer_moves_first():
    rollout = step(to_v2(existing("a"), existing("b"), existing("c"), names=("b", "a", "c")), revision("v1", "a", "b", "c"))

    assert texts(rollout) == {"b": "v2", "a": "v1", "c": "v1"}
    assert told(rollout) == ("False", "RolloutProgressing", "updating Gadget b")


def test_a_move_is_written_to_both_revisions_before_it_is_made():
    observed = to_v2(existing("a", "v2"), existing("b"), existing("c"))

    rollout = step(observed, revision("v1", "b", "c"), revision("v2", "a"))

    assert follows(rollout) == {V2: ["a", "b"], V1: ["c"]}
    assert texts(rollout) == {"a": "v2", "b": "v2", "c": "v1"}


def test_revision_that_its_last_child_leaves_is_deleted():
    observed = to_v2(existing("a", "v2"), existing("b", "v2"), existing("c"))

    rollout = step(observed, revision("v1", "c"), revision("v2", "a", "b"))

    assert follows(rollout) == {V2: ["a", "b", "c"], V1: ["deleted"]}


def test_rollout_is_over_when_every_child_follows_the_latest():
    observed = to_v2(existing("a", "v2"), existing("b", "v2"), existing("c", status=None))

    rollout = step(observed, revision("v2", "a", "b", "c"))

    assert told(rollout)[:2] == ("True", "OnLatestRevision")
    assert not rollout.revisions


def test_spent_revision_is_deleted_unless_it_is_already_going():
    observed = observed_gadgets(existing("a"), existing("b"), existing("c"))

    rollout = step(observed, revision("v0"), revision("vx", metadata={"deletionTimestamp": GOING}), revision("v1", "a", "b", "c"))

    assert follows(rollout) == {"things.example.com-v0": ["deleted"]}


# -- waiting -----------------------------------------------------------------------------------------------------------


TROUBLES: dict[str, tuple[list[JsonObject], str]] = {
    # what it shows: (the child that moved, what the condition says)
    "one that is not there": ([], "Gadget a is missing"),
    "one that is being deleted": ([existing("a", "v2", deletionTimestamp=GOING)], "Gadget a is being deleted"),
    "one that was not updated yet": ([existing("a", "v1")], "Gadget a is not yet as desired"),
    "one whose status is of an older generation": (
        [existing("a", "v2", generation=5, status={**READY, "observedGeneration": 4})],
        "Gadget a has a status of generation 4, not yet of 5",
    ),
    "one without status": ([existing("a", "v2", status=None)], "Gadget a has no condition Ready yet"),
    "one whose conditions are no list": ([existing("a", "v2", status={"conditions": {}})], "Gadget a has no condition Ready yet"),
    "one whose condition is false": ([existing("a", "v2", status=NOT_READY)], "Gadget a has condition Ready with status False, not True"),
}


@pytest.mark.parametrize("problem", TROUBLES.values(), ids=TROUBLES.keys())
def test_nothing_moves_while_a_child_that_moved_is_in_trouble(problem: tuple[list[JsonObject], str]):
    moved, message = problem

    rollout = step(to_v2(*moved, existing("b"), existing("c")), revision("v1", "b", "c"), revision("v2", "a"))

    assert told(rollout) == ("False", "RolloutWaiting", message)
    assert texts(rollout) == {"a": "v2", "b": "v1", "c": "v1"}
    assert not rollout.revisions


WELL: dict[str, tuple[JsonObject, JsonObject | None]] = {
    # what it shows: (the child that moved, the controller)
    "all checks pass": (existing("a", "v2"), None),
    "its status is of the present generation": (existing("a", "v2", generation=5, status={**READY, "observedGeneration": 5}), None),
    "its status says 0, which is nothing": (existing("a", "v2", generation=5, status={**READY, "observedGeneration": 0}), None),
    "it is recreated, so its status can't be a former one's": (
        existing("a", "v2", generation=5, status={**READY, "observedGeneration": 4}),
        rolling_controller(method="RollingRecreate"),
    ),
    "there are no checks": (existing("a", "v2", status=None), rolling_controller(checks=())),
    "the check asks only that the condition is there": (
        existing("a", "v2", status=NOT_READY),
        rolling_controller(checks=({"type": "Ready"},)),
    ),
    "the condition has the reason": (
        existing("a", "v2", status={"conditions": [{"type": "Ready", "status": "True", "reason": "Fine"}]}),
        rolling_controller(checks=({"type": "Ready", "reason": "Fine"},)),
    ),
}


@pytest.mark.parametrize("case", WELL.values(), ids=WELL.keys())
def test_next_child_moves_when_those_that_moved_are_well(case: tuple[JsonObject, JsonObject | None]):
    moved, controller = case

    rollout = step(to_v2(moved, existing("b"), existing("c"), controller=controller), revision("v1", "b", "c"), revision("v2", "a"))

    assert texts(rollout) == {"a": "v2", "b": "v2", "c": "v1"}


def test_condition_with_another_reason_is_waited_for():
    controller = rolling_controller(checks=({"type": "Ready", "reason": "Fine"},))

    rollout = step(
        to_v2(existing("a", "v2"), existing("b"), existing("c"), controller=controller), revision("v1", "b", "c"), revision("v2", "a")
    )

    assert told(rollout)[2] == "Gadget a has condition Ready with reason unknown, not Fine"


def test_recreated_child_is_deleted_when_it_moves_and_created_when_it_is_gone():
    controller = rolling_controller(method="RollingRecreate")
    before = to_v2(existing("a"), existing("b"), existing("c"), controller=controller)
    after = to_v2(existing("b"), existing("c"), controller=controller)

    moving = step(before, revision("v1", "a", "b", "c"))
    waiting = step(after, revision("v1", "b", "c"), revision("v2", "a"))

    assert [
        (type(action), unstructured.name(action.obj)) for action in plan_of(before, before.groups, moving.desired, strategy=DYNAMIC_APPLY)
    ] == [(DeleteChild, "a")]
    assert [unstructured.name(action.obj) for action in plan_of(after, after.groups, waiting.desired, strategy=DYNAMIC_APPLY)] == ["a"]
    assert told(waiting) == ("False", "RolloutWaiting", "Gadget a is missing")


# -- changes during a rollout ------------------------------------------------------------------------------------------


def test_second_change_moves_the_unready_child_first():
    observed = observed_gadgets(existing("a", "v2"), existing("b", "v2", status=NOT_READY), existing("c"), parent=rolling_parent("v3"))

    rollout = step(observed, revision("v1", "c"), revision("v2", "a", "b"))

    assert texts(rollout) == {"a": "v2", "b": "v3", "c": "v1"}
    assert told(rollout)[2] == "updating Gadget b"


def test_rolling_back_in_the_middle_moves_the_child_that_is_in_trouble_first():
    observed = observed_gadgets(existing("a", "v2"), existing("b", "v2", status=NOT_READY), existing("c"), parent=rolling_parent("v1"))

    rollout = step(observed, revision("v1", "c"), revision("v2", "a", "b"))

    assert texts(rollout) == {"a": "v2", "b": "v1", "c": "v1"}
    assert follows(rollout) == {V1: ["b", "c"], V2: ["a"]}


def test_child_that_was_claimed_but_never_updated_needs_no_move_back():
    observed = observed_gadgets(existing("a"), existing("b"), existing("c"), parent=rolling_parent("v1"))

    rollout = step(observed, revision("v1", "b", "c"), revision("v2", "a"))

    assert follows(rollout) == {V1: ["a", "b", "c"], V2: ["deleted"]}
    assert told(rollout)[:2] == ("True", "OnLatestRevision")


def test_child_that_is_as_the_latest_desires_it_follows_the_latest_without_a_turn():
    rollout = step(to_v2(existing("a", "v1"), existing("b"), existing("c", "v2")), revision("v1", "a", "b", "c"))

    assert follows(rollout)[V1] == ["b"]
    assert texts(rollout) == {"a": "v2", "b": "v1", "c": "v2"}


def test_child_that_is_added_in_the_middle_is_created_as_the_latest_desires_it():
    observed = to_v2(existing("a", "v2", status=NOT_READY), existing("b"), names=("a", "b", "new"))

    rollout = step(observed, revision("v1", "b"), revision("v2", "a"))

    assert texts(rollout) == {"a": "v2", "b": "v1", "new": "v2"}
    assert follows(rollout) == {V2: ["a", "new"]}


def test_child_that_is_removed_in_the_middle_follows_nobody():
    rollout = step(to_v2(existing("a", "v2"), existing("b"), names=("a",)), revision("v1", "b"), revision("v2", "a"))

    assert texts(rollout) == {"a": "v2"}
    assert follows(rollout) == {V1: ["deleted"]}
    assert told(rollout)[:2] == ("True", "OnLatestRevision")


def test_former_child_that_goes_missing_while_it_waits_comes_back_as_it_was():
    observed = to_v2(existing("a", "v2", status=NOT_READY), existing("b"))

    rollout = step(observed, revision("v1", "b", "c"), revision("v2", "a"))

    assert texts(rollout) == {"a": "v2", "b": "v1", "c": "v1"}
    assert not rollout.revisions


def test_child_whose_revision_was_deleted_is_held_until_its_turn():
    observed = to_v2(existing("a", "v2", status=NOT_READY), existing("b"), existing("c"))

    rollout = step(observed, revision("v2", "a"))

    assert texts(rollout) == {"a": "v2", "b": "[v2]", "c": "[v2]"}
    assert not plan_of(observed, observed.groups, rollout.desired, strategy=DYNAMIC_APPLY)
    assert told(rollout)[:2] == ("False", "RolloutWaiting")


def test_held_children_move_one_at_a_time_too():
    rollout = step(to_v2(existing("a", "v2"), existing("b"), existing("c")), revision("v2", "a"))

    assert texts(rollout) == {"a": "v2", "b": "v2", "c": "[v2]"}
    assert follows(rollout) == {V2: ["a", "b"]}


def test_held_child_in_trouble_moves_first():
    """Its status is not of the present generation: its own controller has not handled the last change."""
    in_motion = existing("b", "v1", generation=5, status={**READY, "observedGeneration": 4})

    rollout = step(to_v2(existing("a"), in_motion, existing("c")))

    assert texts(rollout) == {"a": "[v2]", "b": "v2", "c": "[v2]"}


def test_child_that_its_own_revision_no_longer_desires_is_held():
    observed = to_v2(existing("a", "v2", status=NOT_READY), existing("b"), existing("c"))
    nothing = replace(gadgets_of(observed.parent), children=())

    rollout = step(observed, revision("v1", "b", "c"), revision("v2", "a"), answers={V1: nothing})

    assert texts(rollout) == {"a": "v2", "b": "[v2]", "c": "[v2]"}


def test_fields_beside_the_revision_change_at_once_for_all():
    """The hook derives the child's text from spec.suffix, which is not in the revisions."""
    observed = observed_gadgets(existing("a"), existing("b"), existing("c"), parent=rolling_parent("v1", suffix="!"))
    answer = replace(gadgets_of(observed.parent), children=tuple(gadget(name, "v1!") for name in "abc"))

    rollout = step(observed, revision("v1", "a", "b", "c"), answers={V1: answer})

    assert texts(rollout) == {"a": "v1!", "b": "v1!", "c": "v1!"}
    assert told(rollout)[:2] == ("True", "OnLatestRevision")


def test_whole_spec_rolls_where_no_fields_are_named():
    controller = rolling_controller(field_paths=())
    before, after = rolling_parent("v1"), rolling_parent("v2", other="field")
    observed = observed_gadgets(existing("a"), existing("b"), existing("c"), parent=after, controller=controller)

    rollout = step(observed, revision("v1", "a", "b", "c", patch={"spec": before["spec"]}))

    assert follows(rollout)[V1] == ["b", "c"]
    assert told(rollout)[2] == "updating Gadget a"


def test_kinds_that_do_not_roll_are_as_the_latest_desires_them():
    observed = to_v2(existing("a", "v2", status=NOT_READY), existing("b"))
    observed = replace(observed, groups=(*observed.groups, ChildGroup(info=CONFIG_MAPS, method="InPlace", objects=())))
    answers = {
        V1: replace(gadgets_of(rolling_parent("v1")), children=(gadget("b", "v1"), config_map("x", data={"from": "v1"}))),
        V2: replace(
            gadgets_of(rolling_parent("v2")), children=(gadget("a", "v2"), gadget("b", "v2"), config_map("x", data={"from": "v2"}))
        ),
    }

    rollout = step(observed, revision("v1", "b"), revision("v2", "a"), answers=answers)

    assert texts(rollout) == {"a": "v2", "b": "v1", "x": ""}
    assert rollout.desired[2].obj["data"] == {"from": "v2"}
    assert follows(rollout) == {}


def test_children_of_a_cluster_scoped_parent_are_named_with_their_namespace():
    observed = observed_gadgets(info=CLUSTER_THINGS)
    answer = replace(gadgets_of(observed.parent), children=(gadget("a", namespace="one"), gadget("a", namespace="two")))
    of = revisions_with(observed, ())

    rollout = rollout_of(observed, observed.groups, answered_by(observed, of, answers={of.latest.name: answer}), rules_of(observed))

    [created] = rollout.revisions
    assert created.obj["children"] == [{"apiGroup": "example.com", "kind": "Gadget", "names": ["one/a", "two/a"]}]


def test_update_of_a_revision_writes_with_the_version_that_was_observed():
    rollout = step(to_v2(existing("a"), existing("b"), existing("c")), revision("v1", "a", "b", "c", metadata={"resourceVersion": "77"}))

    update = next(write for write in rollout.revisions if unstructured.name(write.obj) == V1)
    assert unstructured.resource_version(update.obj) == "77"
    assert (update.info.resource, update.info.namespaced) == ("controllerrevisions", True)


def test_of_many_children_one_moves():
    names = [f"g{number:03}" for number in range(500)]
    observed = to_v2(*[existing(name) for name in names], names=names)

    rollout = rollout_of(observed, observed.groups, answered_with(observed, revision("v1", *names)), rules_of(observed))

    assert list(texts(rollout).values()).count("v2") == 1


# -- combined answers --------------------------------------------------------------------------------------------------

CONDITION: JsonObject = {"type": "Updated", "status": "True", "reason": "OnLatestRevision", "message": ""}


def an_answer(*, status: JsonObject | None = None, resync: float | None = None, finalized: bool = False, unknown: str = "") -> Answer:
    """The answer for one revision."""
    unknown_keys = (unknown,) if unknown else ()
    return replace(EMPTY_ANSWER, status=status, resync_after_seconds=resync, finalized=finalized, unknown_keys=unknown_keys)


CONDITIONS: dict[str, tuple[JsonObject | None, JsonObject]] = {
    # what it shows: (the hook's status, the status with the condition)
    "a null status has the condition alone": (None, {"conditions": [CONDITION]}),
    "a status keeps the rest": ({"phase": "Ready"}, {"phase": "Ready", "conditions": [CONDITION]}),
    "null conditions are none": ({"conditions": None}, {"conditions": [CONDITION]}),
    "other conditions stay": ({"conditions": [{"type": "Ready"}, 1]}, {"conditions": [{"type": "Ready"}, 1, CONDITION]}),
    "the hook's own is replaced": (
        {"conditions": [{"type": "Updated", "status": "Unknown"}, {"type": "Ready"}]},
        {"conditions": [{"type": "Ready"}, CONDITION]},
    ),
    "conditions that are no list are left alone": ({"conditions": {"Ready": True}}, {"conditions": {"Ready": True}}),
}


@pytest.mark.parametrize("case", CONDITIONS.values(), ids=CONDITIONS.keys())
def test_condition_joins_the_hooks_status(case: tuple[JsonObject | None, JsonObject]):
    status, expected = case

    assert with_condition(an_answer(status=status), CONDITION).status == expected


def test_status_is_the_latests_alone():
    whole = combined_answer([an_answer(status={"from": "latest"}), an_answer(status={"from": "older"})])

    assert whole.status == {"from": "latest"}


def test_earliest_resync_of_all_revisions_counts():
    answers = [an_answer(resync=5), an_answer(), an_answer(resync=2)]

    assert combined_answer(answers).resync_after_seconds == 2
    assert combined_answer(answers[1:2]).resync_after_seconds is None


def test_parent_is_finalized_when_all_revisions_say_so():
    yes, no = an_answer(finalized=True), an_answer()

    assert combined_answer([yes, yes]).finalized
    assert not combined_answer([yes, no]).finalized


def test_unknown_keys_of_all_answers_are_named_once():
    answers = [an_answer(unknown="b"), an_answer(unknown="a"), an_answer(unknown="a")]

    assert combined_answer(answers).unknown_keys == ("a", "b")
