"""The controller of an object."""

from metaloop.common.json import JsonObject
from metaloop.common.objects.owner import controller_ref, reference_to

PARENT: JsonObject = {"apiVersion": "ex.io/v1", "kind": "Hello", "metadata": {"name": "p", "namespace": "n", "uid": "u1"}}


def test_reference_to_a_parent_makes_it_the_controller():
    child: JsonObject = {"metadata": {"ownerReferences": [reference_to(PARENT)]}}

    ref = controller_ref(child)

    assert ref is not None
    assert (ref.group, ref.kind, ref.name, ref.uid) == ("ex.io", "Hello", "p", "u1")


def test_object_whose_owner_is_not_a_controller_is_an_orphan():
    assert controller_ref({"metadata": {"ownerReferences": [{"kind": "Hello", "uid": "u1"}]}}) is None


def test_malformed_owner_references_are_ignored():
    assert controller_ref({"metadata": {"ownerReferences": ["x", None]}}) is None
    assert controller_ref({"metadata": "nonsense"}) is None
