"""How objects are named and marked."""

import re

import pytest
from components import MARKS, PREFIX, live, manifest, target

from metaloop.common.objects import unstructured
from metaloop.reconciler.core.component.identity import Marks, ObjectKey, key_of, owner_id


def test_owner_is_known_by_cluster_namespace_and_name():
    assert owner_id("cluster-uid", {"metadata": {"namespace": "ns", "name": "app"}}) == "cluster-uid/ns/app"


def test_cluster_scoped_component_has_no_namespace_in_its_id():
    assert owner_id("cluster-uid", {"metadata": {"name": "app"}}) == "cluster-uid//app"


def test_label_of_an_owner_is_a_valid_label_of_52_characters():
    assert re.fullmatch(r"[a-z2-7]{52}", MARKS.owner_label)


def test_label_of_an_owner_never_changes():
    assert Marks(prefix="p", owner_id="a/b/c").owner_label == "25vhw4tgtsooyjtlkzv55ruo7penj4rnd4tito7qcrv7boep3puq"


def test_key_of_an_object_leaves_out_its_version():
    one, other = (manifest("Deployment", api_version=f"apps/{version}", namespace="n") for version in ("v1", "v1beta1"))

    assert key_of(one) == key_of(other) == ObjectKey("apps", "Deployment", "n", "a")


@pytest.mark.parametrize(("namespace", "text"), [("n", "ConfigMap n/a"), ("", "ConfigMap a")])
def test_key_in_messages_has_a_namespace_only_if_the_object_has_one(namespace: str, text: str):
    assert str(ObjectKey("", "ConfigMap", namespace, "a")) == text


def test_marked_object_has_the_label_and_both_annotations():
    marked = MARKS.on(manifest(), digest="d")

    assert unstructured.labels(marked) == {f"{PREFIX}/owner-id": MARKS.owner_label}
    assert unstructured.annotations(marked) == {f"{PREFIX}/owner-id": "cluster/default/app", f"{PREFIX}/digest": "d"}


def test_marks_leave_other_labels_and_annotations_alone():
    obj = manifest(apply_order="1")
    obj["metadata"] = {**unstructured.metadata(obj), "labels": {"app": "x"}}

    assert MARKS.off(MARKS.on(obj, digest="d")) == obj


def test_unmarked_object_without_other_labels_has_no_empty_maps():
    assert MARKS.off(MARKS.on(manifest(), digest="d")) == manifest()


def test_object_with_our_label_is_ours():
    assert MARKS.ownership(live(target())) == "ours"


def test_object_without_the_label_is_nobodys():
    assert MARKS.ownership(live(target(), marks=None)) == "nobody's"


def test_object_with_the_label_of_another_component_is_anothers():
    another = Marks(prefix=PREFIX, owner_id="cluster/default/other")

    assert MARKS.ownership(live(target(), marks=another)) == "another's"


def test_label_of_another_prefix_does_not_count():
    another = Marks(prefix="other.example.com", owner_id=MARKS.owner_id)

    assert MARKS.ownership(live(target(), marks=another)) == "nobody's"


@pytest.mark.parametrize(("marks", "digest"), [(MARKS, "d"), (None, "")])
def test_digest_is_that_of_what_was_applied(marks: Marks | None, digest: str):
    assert MARKS.digest_of(live(target(), marks=marks, digest="d")) == digest
