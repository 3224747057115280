"""ControllerRevisions: where they are, how they are selected, and which children they name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.api.revision import (
    ClaimedChild,
    children_field,
    claimed_by,
    kind_labels,
    patch_of,
    revision_namespace,
    revision_selector,
)
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import EVERYTHING, parse_selector

HELLOS = ResourceId("ex.io/v1", "hellos")
CHILDREN = parse_selector({"matchLabels": {"app": "a"}}, "spec.selector")

names = st.text("abc/-", min_size=1, max_size=4)
children = st.frozensets(st.builds(ClaimedChild, st.sampled_from(["", "apps"]), st.sampled_from(["Pod", "Deployment"]), names), max_size=8)


@pytest.mark.parametrize(("parent", "expected"), [("shop", "shop"), ("", "default")])
def test_revisions_are_beside_their_parent_or_in_default(parent: str, expected: str):
    assert revision_namespace(parent) == expected


@pytest.mark.parametrize(
    ("parents", "group"), [(HELLOS, "ex.io"), (ResourceId("ex.io/v2beta1", "hellos"), "ex.io"), (ResourceId("v1", "hellos"), "")]
)
def test_revisions_are_labelled_with_the_resource_in_any_version(parents: ResourceId, group: str):
    assert kind_labels(parents) == {"metacontroller.k8s.io/apiGroup": group, "metacontroller.k8s.io/resource": "hellos"}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({**kind_labels(HELLOS), "app": "a"}, True),
        ({**kind_labels(HELLOS), "app": "a", "more": "labels"}, True),
        (kind_labels(HELLOS), False),
        ({"app": "a"}, False),
        ({**kind_labels(ResourceId("ex.io/v1", "others")), "app": "a"}, False),
        ({**kind_labels(ResourceId("other.io/v1", "hellos")), "app": "a"}, False),
    ],
)
def test_revisions_are_selected_as_children_and_by_their_resource(labels: dict[str, str], *, expected: bool):
    assert revision_selector(CHILDREN, HELLOS).matches(labels) is expected


def test_parent_that_selects_everything_still_has_only_revisions_of_its_resource():
    selector = revision_selector(EVERYTHING, HELLOS)

    assert selector.matches(kind_labels(HELLOS))
    assert not selector.matches({})


@given(children)
def test_children_are_read_as_they_were_written(claimed: frozenset[ClaimedChild]):
    assert claimed_by({"children": [*children_field(claimed)]}) == claimed


@given(children.flatmap(lambda some: st.permutations(sorted(some))))
def test_children_are_written_in_one_way_whatever_their_order(claimed: list[ClaimedChild]):
    """A revision whose children did not change is not written again."""
    assert children_field(claimed) == children_field(sorted(claimed))


def test_children_of_one_kind_share_an_entry():
    claimed = [ClaimedChild("apps", "Deployment", "d"), ClaimedChild("", "Pod", "b"), ClaimedChild("", "Pod", "a")]

    assert children_field(claimed) == [
        {"apiGroup": "", "kind": "Pod", "names": ["a", "b"]},
        {"apiGroup": "apps", "kind": "Deployment", "names": ["d"]},
    ]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (None, []),
        ("Pod/a", []),
        ([None, "Pod", 1], []),
        ([{"kind": "Pod"}], []),
        ([{"kind": "Pod", "names": "a"}], []),
        ([{"kind": "Pod", "names": ["a", 1, None]}], [ClaimedChild("", "Pod", "a")]),
        (
            [{"kind": "Pod", "names": ["a"]}, {"kind": "Pod", "names": ["a", "b"]}],
            [ClaimedChild("", "Pod", "a"), ClaimedChild("", "Pod", "b")],
        ),
    ],
    ids=repr,
)
def test_malformed_entries_of_a_stored_revision_are_ignored(field: JsonValue, expected: list[ClaimedChild]):
    assert claimed_by({"children": field}) == set(expected)


@pytest.mark.parametrize(
    ("revision", "expected"),
    [({"parentPatch": {"spec": {"size": 1}}}, {"spec": {"size": 1}}), ({}, {}), ({"parentPatch": None}, {}), ({"parentPatch": "x"}, {})],
)
def test_patch_is_what_the_revision_records_of_its_parent(revision: JsonObject, expected: JsonObject):
    assert patch_of(revision) == expected
