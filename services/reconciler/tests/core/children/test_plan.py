"""The plan for observed and desired children: changes, update methods, and the order of actions."""

import pytest
from builders import CONFIG_MAPS, DYNAMIC_APPLY, LABELS, PARENT_UID, a_parent, config_map, group, observed, stored
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.api.rules import UPDATE_METHODS, UpdateMethod
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.reconciler.core.apply.last_applied import new_child
from metaloop.reconciler.core.children.changes import Current, Drifted, Missing, Undesired, changes_of
from metaloop.reconciler.core.children.plan import plan_of
from metaloop.reconciler.core.model import ChildGroup, DesiredChild, Plan

PARENT = a_parent()
GOING: JsonObject = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def desired(name: str = "a", *, value: str = "value", method: UpdateMethod = "InPlace") -> DesiredChild:
    """A desired ConfigMap."""
    obj = config_map(name, data={"key": value}, namespace="default")
    return DesiredChild(info=CONFIG_MAPS, method=method, namespace="default", name=name, obj=obj)


def existing(name: str = "a", *, value: str = "value", metadata: JsonObject | None = None) -> JsonObject:
    """A ConfigMap that we created earlier."""
    return stored(new_child(config_map(name, data={"key": value}, namespace="default"), parent=PARENT), metadata=metadata)


def plan(children: ChildGroup, *wanted: DesiredChild, parent: JsonObject = PARENT) -> Plan:
    """The plan for these children."""
    return plan_of(observed(children, parent=parent), (children,), wanted, strategy=DYNAMIC_APPLY)


def actions(of: Plan) -> list[tuple[str, str]]:
    """The kind and the object of each action, in order."""
    return [(type(action).__name__, unstructured.name(action.obj)) for action in of]


def test_every_child_is_missing_drifted_unwanted_or_current():
    groups = (group(CONFIG_MAPS, existing("same"), existing("drifted", value="old"), existing("unwanted")),)

    changes = list(changes_of(groups, [desired("same"), desired("drifted"), desired("missing")], strategy=DYNAMIC_APPLY))

    assert [type(change) for change in changes] == [Undesired, Current, Drifted, Missing]


def test_nothing_is_planned_where_everything_is_as_desired():
    assert not plan(group(CONFIG_MAPS, existing("a"), existing("b")), desired("b"), desired("a"))


def test_missing_child_is_created_under_the_parents_control():
    [action] = plan(group(), desired("a"))

    owner = controller_ref(action.obj)
    assert owner is not None
    assert owner.uid == PARENT_UID
    assert action.reason


def test_unwanted_child_is_deleted():
    assert actions(plan(group(CONFIG_MAPS, existing("a")))) == [("DeleteChild", "a")]


def test_child_that_is_being_deleted_is_left_alone():
    children = group(CONFIG_MAPS, existing("unwanted", metadata=GOING), existing("drifted", value="old", metadata=GOING))

    assert not plan(children, desired("drifted"))


def test_deletions_come_before_everything_else():
    children = group(CONFIG_MAPS, existing("gone"), existing("drifted", value="old"))

    assert actions(plan(children, desired("new"), desired("drifted"))) == [
        ("DeleteChild", "gone"),
        ("CreateChild", "new"),
        ("UpdateChild", "drifted"),
    ]


def test_update_writes_with_the_version_that_was_observed():
    [action] = plan(group(CONFIG_MAPS, existing(value="old", metadata={"resourceVersion": "77"})), desired())

    assert (unstructured.uid(action.obj), unstructured.resource_version(action.obj)) == ("uid-of-a", "77")
    assert unstructured.labels(action.obj) == LABELS


names = st.sets(st.sampled_from("abcdef"))


@given(observed_names=names, desired_names=names, method=st.sampled_from([*UPDATE_METHODS]))
def test_plan_touches_each_child_once_and_only_those_that_differ(observed_names: set[str], desired_names: set[str], method: UpdateMethod):
    children = group(CONFIG_MAPS, *[existing(name) for name in sorted(observed_names)], method=method)

    planned = actions(plan(children, *[desired(name, method=method) for name in sorted(desired_names)]))

    assert {name for verb, name in planned if verb == "CreateChild"} == desired_names - observed_names
    assert {name for verb, name in planned if verb == "DeleteChild"} == observed_names - desired_names
    assert len(planned) == len(observed_names ^ desired_names)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("OnDelete", []),
        ("Recreate", [("DeleteChild", "a")]),
        ("InPlace", [("UpdateChild", "a")]),
        ("RollingRecreate", [("DeleteChild", "a")]),
        ("RollingInPlace", [("UpdateChild", "a")]),
    ],
)
def test_update_method_decides_what_becomes_of_a_drifted_child(method: UpdateMethod, expected: list[tuple[str, str]]):
    children = group(CONFIG_MAPS, existing(value="old"), method=method)

    assert actions(plan(children, desired(method=method))) == expected


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("OnDelete", []),
        ("Recreate", [("UpdateChild", "a")]),
        ("InPlace", [("UpdateChild", "a")]),
        ("RollingRecreate", [("UpdateChild", "a")]),
        ("RollingInPlace", [("UpdateChild", "a")]),
    ],
)
def test_adopted_child_that_is_as_desired_is_never_recreated(method: UpdateMethod, expected: list[tuple[str, str]]):
    adopted = stored(config_map("a", data={"key": "value"}), owner=PARENT)

    assert actions(plan(group(CONFIG_MAPS, adopted, method=method), desired(method=method))) == expected
