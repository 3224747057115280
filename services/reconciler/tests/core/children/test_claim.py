"""The three rules of controllerRef, as a table and as properties."""

import pytest
from builders import CONFIG_MAPS, LABELS, PARENT_UID, a_parent, config_map, group, observed, stored
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref, owner_references
from metaloop.reconciler.core.children.claim import Claim, Claims, Ignore, Keep, claim_of, claims_of, name_conflict, with_adopted
from metaloop.reconciler.core.model import Adopt, Release
from metaloop.reconciler.errors import NameTaken

US, ANOTHER = a_parent(), a_parent(name="another", uid="uid-of-another")
NAMESAKE = a_parent(uid="uid-of-a-former-parent")
GOING = "2026-01-01T00:00:00Z"
MATCHING: JsonObject = LABELS
OTHER: JsonObject = {"app": "other"}
NOT_GOING: JsonObject = {}
IS_GOING: JsonObject = {"deletionTimestamp": GOING}

LAWS: dict[str, tuple[JsonObject | None, JsonObject, str, type[Claim]]] = {
    # what it shows: (its controller, its labels, who is being deleted, the claim)
    "an orphan that matches is adopted": (None, MATCHING, "", Adopt),
    "an orphan that does not match is ignored": (None, OTHER, "", Ignore),
    "an orphan that is being deleted is ignored": (None, MATCHING, "child", Ignore),
    "a parent that is being deleted adopts nothing": (None, MATCHING, "parent", Ignore),
    "our child that matches is kept": (US, MATCHING, "", Keep),
    "our child that matches is kept while it is being deleted": (US, MATCHING, "child", Keep),
    "our child that matches is kept while the parent is being deleted": (US, MATCHING, "parent", Keep),
    "our child that no longer matches is released": (US, OTHER, "", Release),
    "our child that no longer matches is released while it is being deleted": (US, OTHER, "child", Release),
    "a parent that is being deleted releases nothing": (US, OTHER, "parent", Ignore),
    "another's child is ignored though it matches": (ANOTHER, MATCHING, "", Ignore),
    "another's child is ignored": (ANOTHER, OTHER, "", Ignore),
    "the child of a former parent of our name is ignored": (NAMESAKE, MATCHING, "", Ignore),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_claims_follow_the_laws(law: tuple[JsonObject | None, JsonObject, str, type[Claim]]):
    owner, labels, deleting, expected = law
    candidate = stored(config_map(labels=labels), owner=owner, metadata=IS_GOING if deleting == "child" else NOT_GOING)
    world = observed(parent=a_parent(deleting=deleting == "parent"))

    assert isinstance(claim_of(candidate, group=group(), observed=world), expected)


def test_adoption_keeps_other_owners_and_replaces_an_older_reference_to_us():
    friend: JsonObject = {"apiVersion": "v1", "kind": "Node", "name": "friend", "uid": "uid-of-friend"}
    stale: JsonObject = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "parent", "uid": PARENT_UID}
    candidate = stored(config_map(), metadata={"ownerReferences": [friend, stale]})

    claim = claim_of(candidate, group=group(), observed=observed())

    assert isinstance(claim, Adopt)
    assert [reference["uid"] for reference in owner_references(claim.obj)] == ["uid-of-friend", PARENT_UID]
    owner = controller_ref(claim.obj)
    assert owner is not None
    assert owner.uid == PARENT_UID


def test_release_keeps_other_owners():
    friend: JsonObject = {"apiVersion": "v1", "kind": "Node", "name": "friend", "uid": "uid-of-friend"}
    ours = owner_references(stored(config_map(), owner=US))
    candidate = stored(config_map(labels=OTHER), metadata={"ownerReferences": [friend, *ours]})

    claim = claim_of(candidate, group=group(), observed=observed())

    assert isinstance(claim, Release)
    assert owner_references(claim.obj) == [friend]


def test_claims_write_with_the_version_that_was_observed():
    claim = claim_of(stored(config_map(), metadata={"resourceVersion": "77"}), group=group(), observed=observed())

    assert isinstance(claim, Adopt)
    assert (unstructured.uid(claim.obj), unstructured.resource_version(claim.obj)) == ("uid-of-a", "77")


def test_groups_hold_what_is_kept_and_the_empty_ones_too():
    kept = stored(config_map("kept"), owner=US)
    world = observed(group(CONFIG_MAPS, kept, stored(config_map("orphan")), stored(config_map("theirs"), owner=ANOTHER)))

    claims = claims_of(world)

    assert [child.objects for child in claims.groups] == [(kept,)]
    assert [unstructured.name(action.obj) for action in claims.actions] == ["orphan"]


def test_adopted_children_join_their_group_as_they_now_are():
    now = stored(config_map("orphan"), owner=US, metadata={"resourceVersion": "99"})

    [joined] = with_adopted((group(),), {CONFIG_MAPS.id: [now]})

    assert joined.objects == (now,)


@given(matches=st.booleans(), child_is_going=st.booleans(), parent_is_going=st.booleans())
def test_what_another_controller_owns_is_never_touched(*, matches: bool, child_is_going: bool, parent_is_going: bool):
    metadata = IS_GOING if child_is_going else NOT_GOING
    candidate = stored(config_map(labels=MATCHING if matches else OTHER), owner=ANOTHER, metadata=metadata)

    assert isinstance(claim_of(candidate, group=group(), observed=observed(parent=a_parent(deleting=parent_is_going))), Ignore)


@given(owner=st.sampled_from([None, US, ANOTHER]), matches=st.booleans(), child_is_going=st.booleans())
def test_a_claim_that_was_carried_out_is_followed_by_no_other(*, owner: JsonObject | None, matches: bool, child_is_going: bool):
    metadata = IS_GOING if child_is_going else NOT_GOING
    candidate = stored(config_map(labels=MATCHING if matches else OTHER), owner=owner, metadata=metadata)
    claim = claim_of(candidate, group=group(), observed=observed())
    carried_out = claim.obj if isinstance(claim, (Adopt, Release)) else candidate

    assert isinstance(claim_of(carried_out, group=group(), observed=observed()), (Keep, Ignore))


# -- a name that is taken ----------------------------------------------------------------------------------------------

BY, KEY = "metaloop.dev/map-controller", "metaloop.dev/map-key"


def marked(**annotations: JsonValue) -> JsonObject:
    """A ConfigMap of the parent with these annotations."""
    return stored(config_map(), owner=a_parent(), metadata={"annotations": {**annotations}})


@pytest.mark.parametrize(
    ("holder", "desired", "rival"),
    [
        ({BY: "m", KEY: "one"}, {BY: "m", KEY: "two"}, "one"),
        ({BY: "another", KEY: "one"}, {BY: "m", KEY: "one"}, ""),
        ({BY: "another", KEY: "one"}, {BY: "m", KEY: "two"}, ""),
        ({}, {BY: "m", KEY: "two"}, ""),
        ({BY: "m", KEY: "one"}, {}, ""),
    ],
    ids=["another input", "another controller", "another controller and input", "not marked", "desired as a child"],
)
def test_name_within_one_parent_is_taken_by_what_is_marked_otherwise(holder: JsonObject, desired: JsonObject, rival: str):
    conflict = name_conflict(marked(**holder), desired=marked(**desired), observed=observed())

    assert isinstance(conflict, NameTaken)
    assert conflict.rival == rival


def test_name_of_an_own_output_that_is_not_cached_yet_is_no_lasting_conflict():
    marks: JsonObject = {BY: "m", KEY: "one"}

    assert isinstance(name_conflict(marked(**marks), desired=marked(**marks), observed=observed()), Conflict)


@pytest.mark.parametrize("key", [BY, KEY])
def test_output_of_a_map_controller_is_no_child(key: str):
    assert claims_of(observed(group(CONFIG_MAPS, marked(**{key: "x"})))) == Claims(groups=(group(CONFIG_MAPS),), actions=())
