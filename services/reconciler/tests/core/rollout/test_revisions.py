"""The revisions of a parent: which is the latest, what the parent is in each, and which children follow which."""

from dataclasses import replace

import pytest
from builders import CLUSTER_THINGS, CONFIG_MAPS, LABELS, PARENT_UID, THINGS
from hypothesis import given
from hypothesis import strategies as st
from rolling import claimed, history_of, observed_gadgets, revision, revisions_with, rolling_controller, rolling_parent

from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import parse_selector
from metaloop.reconciler.core.children.claim import Adopt, Keep, Release, claim_of, claims_of
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.rollout.revisions import (
    FIELDS_ANNOTATION,
    Revisions,
    new_revision,
    revision_name,
    with_revisions_as_children,
)

EARLIER, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
KINDS_LABELS = {"metacontroller.k8s.io/apiGroup": "example.com", "metacontroller.k8s.io/resource": "things"}


def of(*stored: JsonObject, text: str = "v1", controller: JsonObject | None = None) -> Revisions:
    """The revisions of a parent whose template says `text`."""
    return revisions_with(observed_gadgets(parent=rolling_parent(text), controller=controller), stored)


def new(observed: Observed) -> JsonObject:
    """The new revision of a parent that has none."""
    return new_revision(observed, revisions_with(observed).latest, (), history=history_of(observed))


def recorded(*paths: str) -> JsonObject:
    """Metadata that records the fields of a revision."""
    return {"annotations": {FIELDS_ANNOTATION: dumps(list(paths)).decode()}}


# -- the latest revision -----------------------------------------------------------------------------------------------


def test_first_revision_of_a_parent_is_yet_to_be_made():
    revisions = of()

    assert revisions.latest.stored is None
    assert revisions.latest.patch == {"spec": {"template": {"text": "v1"}}}
    assert (revisions.older, revisions.unused) == ((), ())


def test_stored_revision_with_the_present_patch_is_the_latest():
    revisions = of(revision("v1", "a"), revision("v2", "b"))

    assert revisions.latest.name == "things.example.com-v1"
    assert revisions.latest.claims == claimed("a")
    assert [older.name for older in revisions.older] == ["things.example.com-v2"]


def test_rolling_back_makes_an_older_revision_the_latest_again():
    stored = (revision("v1", "a", made=EARLIER), revision("v2", "b", made=LATER))

    assert of(*stored, text="v1").latest.stored == stored[0]
    assert of(*stored, text="v2").latest.stored == stored[1]


def test_the_latest_shows_the_parent_as_it_is():
    parent = rolling_parent("v1")

    assert revisions_with(observed_gadgets(parent=parent), [revision("v1")]).latest.parent is parent


def test_of_two_revisions_with_the_present_patch_one_inherits_all_children():
    revisions = of(revision("v1", "a", name="one", made=LATER), revision("v1", "b", name="two", made=EARLIER))

    assert (revisions.latest.name, revisions.latest.claims) == ("one", claimed("a", "b"))
    assert [unstructured.name(unused) for unused in revisions.unused] == ["two"]


def test_revision_whose_patch_somebody_changed_is_still_the_one_of_its_name():
    """Another revision of that name could not be created."""
    name = of().latest.name

    revisions = of(revision("tampered with", "a", name=name))

    assert (revisions.latest.name, revisions.latest.claims) == (name, claimed("a"))
    assert revisions.latest.patch == {"spec": {"template": {"text": "v1"}}}
    assert revisions.older == ()


# -- the children of each revision -------------------------------------------------------------------------------------


def test_older_revision_without_children_is_spent():
    revisions = of(revision("v0"), revision("v1", "a"))

    assert revisions.older == ()
    assert [unstructured.name(unused) for unused in revisions.unused] == ["things.example.com-v0"]


def test_latest_without_children_is_not_spent():
    assert of(revision("v1")).unused == ()


def test_child_that_two_revisions_name_follows_the_latest():
    revisions = of(revision("v0", "a", "b", made=LATER), revision("v1", "a", made=EARLIER))

    assert revisions.latest.claims == claimed("a")
    assert [older.claims for older in revisions.older] == [claimed("b")]


def test_child_that_two_older_revisions_name_follows_the_newer():
    revisions = of(revision("v0", "a", "b", made=EARLIER), revision("v1", "a", made=LATER), text="v2")

    assert [(older.name[-2:], older.claims) for older in revisions.older] == [("v1", claimed("a")), ("v0", claimed("b"))]


def test_kind_that_rolls_no_longer_is_nobodys():
    stored = revision("v0", "a")
    stored["children"] = [{"apiGroup": "", "kind": "ConfigMap", "names": ["x"]}]

    assert of(stored).older == ()


@pytest.mark.parametrize("children", [None, 1, [1], [{"names": None}], [{"kind": "Gadget", "apiGroup": "example.com", "names": [1]}]])
def test_malformed_children_of_a_revision_are_none(children: JsonValue):
    assert of({**revision("v1"), "children": children}).latest.claims == frozenset()


# -- the parent in older revisions -------------------------------------------------------------------------------------


def test_older_revision_shows_its_fields_as_they_were_and_the_rest_as_it_is():
    parent = rolling_parent("v2", names=("a", "b", "c", "d"))

    [older] = revisions_with(observed_gadgets(parent=parent), [revision("v1", "a")]).older

    spec = unstructured.child_object(older.parent, "spec")
    assert spec["template"] == {"text": "v1"}
    assert spec["names"] == ["a", "b", "c", "d"]
    assert older.parent["metadata"] == parent["metadata"]


def test_parent_itself_is_never_changed():
    parent = rolling_parent("v2")
    before = dumps(parent)

    revisions_with(observed_gadgets(parent=parent), [revision("v1", "a", metadata=recorded("spec.template", "spec.extra"))])

    assert dumps(parent) == before


FIELDS: dict[str, tuple[tuple[str, ...], JsonObject, JsonObject]] = {
    # what it shows: (fields of the controller, metadata of the older revision, what its parent has in spec.template and
    # spec.extra)
    "a field that it had not, and says so, is missing": (
        ("spec.template", "spec.extra"),
        recorded("spec.template", "spec.extra"),
        {"template": {"text": "v1"}},
    ),
    "a field that it says nothing of is as it is now": (
        ("spec.template", "spec.extra"),
        recorded("spec.template"),
        {"template": {"text": "v1"}, "extra": "now"},
    ),
    "a revision that does not say its fields leaves what it has not": (
        ("spec.template", "spec.extra"),
        {},
        {"template": {"text": "v1"}, "extra": "now"},
    ),
    "a field that no longer makes a revision is as it is now": (
        ("spec.extra",),
        recorded("spec.template", "spec.extra"),
        {"template": {"text": "v2"}},
    ),
    "fields that grew to the whole spec change only where it knows": (
        ("spec",),
        recorded("spec.template"),
        {"template": {"text": "v1"}, "extra": "now"},
    ),
    "fields that shrank to the template change nothing else": (
        ("spec.template",),
        recorded("spec"),
        {"template": {"text": "v1"}, "extra": "now"},
    ),
    "an annotation that is no list counts as none": (
        ("spec.template", "spec.extra"),
        {"annotations": {FIELDS_ANNOTATION: "{"}},
        {"template": {"text": "v1"}, "extra": "now"},
    ),
}


@pytest.mark.parametrize("case", FIELDS.values(), ids=FIELDS.keys())
def test_parent_of_an_older_revision(case: tuple[tuple[str, ...], JsonObject, JsonObject]):
    paths, metadata, expected = case
    controller = rolling_controller(field_paths=paths)
    observed = observed_gadgets(parent=rolling_parent("v2", extra="now"), controller=controller)

    [older] = revisions_with(observed, [revision("v1", "a", metadata=metadata)]).older

    spec = unstructured.child_object(older.parent, "spec")
    assert {key: spec[key] for key in ("template", "extra") if key in spec} == expected


def test_fields_that_overlap_and_fields_that_are_missing_make_one_patch():
    controller = rolling_controller(field_paths=("spec", "spec.template.text", "nothing", ""))
    parent = rolling_parent("v1")

    assert revisions_with(observed_gadgets(parent=parent, controller=controller), ()).latest.patch == {"spec": parent["spec"]}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("spec.template.text.deeper", "spec.template.text is a string"),
        ("spec.names.0", "spec.names is a list"),
        ("kind.x", "kind is a string"),
    ],
)
def test_field_path_that_leads_through_no_object_is_refused(path: str, words: str):
    """Read as a missing field, it would update all children at once."""
    observed = observed_gadgets(
        parent=rolling_parent("v1", names=["a"]), controller=rolling_controller(field_paths=("spec.template", path))
    )

    with pytest.raises(InvalidSpec, match=rf"revisionHistory\.fieldPaths\[1\]: {path} .*{words}"):
        revisions_with(observed, ())


def test_field_path_below_what_is_missing_or_null_is_a_field_that_is_missing():
    observed = observed_gadgets(
        parent=rolling_parent("v1", extra=None), controller=rolling_controller(field_paths=("spec.extra.deeper", "spec.no.deeper"))
    )

    assert revisions_with(observed, ()).latest.patch == {}


# -- stored revisions --------------------------------------------------------------------------------------------------


def test_name_is_the_one_that_metacontroller_gives():
    """The hash was computed with Go's encoder."""
    patch: JsonObject = {"spec": {"template": {"n": 1, "a": "<x>&"}}}

    assert revision_name(THINGS, "uid-1", patch) == "things.example.com-70d198e90b5de288024307b90257782f76086c1d"


def test_name_of_a_core_parents_revision_says_core():
    assert revision_name(CONFIG_MAPS, "uid-1", {}).startswith("configmaps.core-")


def test_name_is_never_too_long_for_one():
    long = ResourceInfo(api_version=f"{'g' * 200}/v1", resource="r" * 60, kind="R", namespaced=True)

    assert len(revision_name(long, "uid-1", {})) == 253


def test_new_revision_is_controlled_by_the_parent_and_says_what_it_is_about():
    made = new(observed_gadgets())

    owner = controller_ref(made)
    assert owner is not None
    assert owner.uid == PARENT_UID
    assert unstructured.namespace(made) == "default"
    assert made["parentPatch"] == {"spec": {"template": {"text": "v1"}}}
    assert made["children"] == []
    assert unstructured.annotations(made) == {FIELDS_ANNOTATION: '["spec.template"]'}


def test_revisions_of_a_cluster_scoped_parent_are_kept_in_the_default_namespace():
    assert unstructured.namespace(new(observed_gadgets(info=CLUSTER_THINGS))) == "default"


@pytest.mark.parametrize(
    ("template_labels", "selector", "expected"),
    [
        ({"app": "mine", "tier": "web"}, {"matchLabels": {"app": "mine"}}, {"app": "mine", "tier": "web"}),
        ({"app": "other"}, {"matchLabels": {"app": "mine"}}, {"app": "mine"}),
        ({}, {"matchLabels": {"app": "mine"}}, {"app": "mine"}),
        ({}, {"matchExpressions": [{"key": "app", "operator": "In", "values": ["mine", "yours"]}]}, {"app": "mine"}),
        ({}, {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {"app": ""}),
        ({"app": "x"}, {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, {}),
    ],
)
def test_labels_are_the_templates_where_those_satisfy_the_selector(
    template_labels: JsonObject, selector: JsonObject, expected: dict[str, str]
):
    parent = rolling_parent(selector=selector)
    unstructured.child_object(unstructured.child_object(parent, "spec"), "template")["metadata"] = {"labels": template_labels}

    assert unstructured.labels(new(observed_gadgets(parent=parent))) == expected | KINDS_LABELS


def test_generated_selector_has_its_label_on_revisions_too():
    observed = observed_gadgets(controller=rolling_controller(generateSelector=True))

    assert unstructured.labels(new(observed)) == {"controller-uid": PARENT_UID} | KINDS_LABELS


requirements = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": sorted(values)},
        st.sampled_from("xyz"),
        st.sampled_from(["In", "NotIn"]),
        st.sets(st.sampled_from(["", "x", "p", "q"]), min_size=1),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator}, st.sampled_from("xyz"), st.sampled_from(["Exists", "DoesNotExist"])
    ),
)


@given(expressions=st.lists(requirements, min_size=1, max_size=5), witness=st.dictionaries(st.sampled_from("xyz"), st.sampled_from("pq")))
def test_new_revision_is_never_released_again(expressions: list[JsonValue], witness: dict[str, str]):
    """The revision has labels that the selector matches, whatever these are."""
    selector: JsonObject = {"matchExpressions": expressions}
    if not parse_selector(selector, "").matches(witness):
        return
    observed = observed_gadgets(parent=rolling_parent(selector=selector))

    owner = with_revisions_as_children(observed)

    assert isinstance(claim_of(new(observed), group=owner.groups[0], observed=owner), Keep)


# -- claiming revisions ------------------------------------------------------------------------------------------------


def test_revisions_are_claimed_by_the_laws_of_children():
    labels: JsonObject = {**LABELS, **KINDS_LABELS}
    ours = revision("v1", metadata={"labels": labels})
    orphan = revision("v2", metadata={"labels": labels}, is_orphan=True)
    astray = revision("v3", metadata={"labels": {"app": "other", **KINDS_LABELS}})
    others: JsonObject = {**labels, "metacontroller.k8s.io/resource": "others"}
    of_another_kind = revision("v4", metadata={"labels": others}, is_orphan=True)
    owner = with_revisions_as_children(replace(observed_gadgets(), revisions=(ours, orphan, astray, of_another_kind)))

    claims = claims_of(owner)

    assert [group.objects for group in claims.groups] == [(ours,)]
    assert [(type(action), unstructured.name(action.obj)) for action in claims.actions] == [
        (Adopt, "things.example.com-v2"),
        (Release, "things.example.com-v3"),
    ]
