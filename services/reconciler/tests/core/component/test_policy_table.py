"""What is done about one object: each update policy against each state in which the object may be found.

The same table holds for every policy but for the last three columns, which say how an object is created, brought up to
date and adopted.
"""

from dataclasses import replace

import pytest
from components import MARKS, NOW, PREFIX, TIMESTAMP, going, live, manifest, target

from metaloop.common.api.policies import AdoptionPolicy, DriftDetection, Policies, ReconcilePolicy, UpdatePolicy
from metaloop.common.json import JsonObject
from metaloop.reconciler.core.component.identity import Marks
from metaloop.reconciler.core.component.inventory import Item, scheduled
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.component.waves import NOT_WRITTEN_FOR_LONG, Rules, planned
from metaloop.reconciler.core.model import ApplyChild, CreateChild, DeleteChild, UpdateChild
from metaloop.reconciler.errors import NameTaken

ANOTHER = Marks(prefix=PREFIX, owner_id="cluster/default/other")
LONG_AGO = "2026-01-02T10:00:00Z"
DATA: JsonObject = {"data": {"k": "v"}}

HOW: dict[UpdatePolicy, tuple[type, type | None, type | None, type]] = {
    # policy: an absent object, an outdated one, one that was not written for long, one that is adopted
    "Replace": (CreateChild, UpdateChild, UpdateChild, UpdateChild),
    "SsaMerge": (ApplyChild, ApplyChild, ApplyChild, ApplyChild),
    "SsaOverride": (ApplyChild, ApplyChild, ApplyChild, ApplyChild),
    "Recreate": (CreateChild, DeleteChild, None, UpdateChild),
}
POLICIES: list[UpdatePolicy] = [*HOW]


def target_of(update: UpdatePolicy, *, adoption: AdoptionPolicy = "IfUnowned", reconcile: ReconcilePolicy = "OnObjectChange") -> Target:
    """A ConfigMap with these policies."""
    return target({**manifest(), **DATA}, policies=Policies(update=update, adoption=adoption, reconcile=reconcile))


def action_on(of: Target, obj: JsonObject | None, *, applied_at: str = TIMESTAMP, drift: DriftDetection = "Fields") -> type | None:
    """What is done about an object that is found so."""
    [item] = scheduled({}, [of]).values()
    known: Item = replace(item, phase="Ready", status="Current", last_applied_at=applied_at)
    action = planned(of, known, obj, Rules(marks=MARKS, now=NOW, drift_detection=drift)).action
    return type(action) if action is not None else None


@pytest.mark.parametrize("update", POLICIES)
def test_absent_object_is_created(update: UpdatePolicy):
    assert action_on(target_of(update), None) is HOW[update][0]


@pytest.mark.parametrize("update", POLICIES)
def test_object_that_is_as_it_should_be_is_left_alone(update: UpdatePolicy):
    of = target_of(update)

    assert action_on(of, live(of)) is None


@pytest.mark.parametrize("update", POLICIES)
def test_object_that_is_being_deleted_is_left_alone_whatever_it_is(update: UpdatePolicy):
    of = target_of(update)

    assert {action_on(of, going(each)) for each in (live(of), live(of, digest="old"), live(of, marks=None))} == {None}


@pytest.mark.parametrize("update", POLICIES)
def test_outdated_object_is_brought_up_to_date(update: UpdatePolicy):
    of = target_of(update)

    assert action_on(of, live(of, digest="old")) is HOW[update][1]


@pytest.mark.parametrize("update", POLICIES)
@pytest.mark.parametrize("drift", ["Fields", "Digest"])
def test_changed_field_counts_where_fields_are_compared(update: UpdatePolicy, drift: DriftDetection):
    of = target_of(update)

    assert action_on(of, live(of, data={"k": "w"}), drift=drift) is (HOW[update][1] if drift == "Fields" else None)


@pytest.mark.parametrize("update", POLICIES)
@pytest.mark.parametrize("applied_at", [LONG_AGO, ""])
@pytest.mark.parametrize("drift", ["Fields", "Digest"])
def test_object_that_was_not_written_for_long_is_written_again(update: UpdatePolicy, applied_at: str, drift: DriftDetection):
    of = target_of(update)

    assert action_on(of, live(of), applied_at=applied_at, drift=drift) is HOW[update][2]


@pytest.mark.parametrize("update", POLICIES)
def test_object_that_is_written_once_is_left_alone_unless_it_is_gone(update: UpdatePolicy):
    of = target_of(update, reconcile="Once")

    assert action_on(of, live(of, data={"k": "w"}), applied_at=LONG_AGO) is None
    assert action_on(of, None) is HOW[update][0]


@pytest.mark.parametrize("update", POLICIES)
@pytest.mark.parametrize("marks", [None, ANOTHER])
@pytest.mark.parametrize("adoption", ["Never", "IfUnowned", "Always"])
@pytest.mark.parametrize("reconcile", ["OnObjectChange", "Once"])
def test_object_of_others_is_adopted_where_the_policy_allows_it(
    update: UpdatePolicy, marks: Marks | None, adoption: AdoptionPolicy, reconcile: ReconcilePolicy
):
    """Also one that is recreated or written once: it gets our marks, and its present content may be what we want."""
    of = target_of(update, adoption=adoption, reconcile=reconcile)
    if adoption == "Always" or (adoption == "IfUnowned" and marks is None):
        assert action_on(of, live(of, marks=marks)) is HOW[update][3]
        return
    with pytest.raises(NameTaken):
        action_on(of, live(of, marks=marks))


def test_reason_of_a_write_tells_which_of_them_it_was():
    of = target_of("Replace")
    [item] = scheduled({}, [of]).values()
    known = replace(item, phase="Ready", last_applied_at=LONG_AGO)

    action = planned(of, known, live(of), Rules(marks=MARKS, now=NOW)).action

    assert isinstance(action, UpdateChild)
    assert action.reason == NOT_WRITTEN_FOR_LONG


@pytest.mark.parametrize(("update", "folded"), [("SsaMerge", ()), ("SsaOverride", ("kubectl", "helm"))])
def test_apply_says_whose_fields_become_ours(update: UpdatePolicy, folded: tuple[str, ...]):
    of = target({**manifest(), **DATA}, policies=Policies(update=update, overridden_managers=("kubectl", "helm")))
    [item] = scheduled({}, [of]).values()

    action = planned(of, item, live(of, digest="old"), Rules(marks=MARKS, now=NOW)).action

    assert isinstance(action, ApplyChild)
    assert action.folded_managers == folded
