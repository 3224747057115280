"""What is kept of an object."""

from metaloop.common.json import loads
from metaloop.watcher.core.record import record_of, version_number

from ..objects import obj, owned_by


def test_managed_fields_are_dropped_and_the_rest_kept():
    record = record_of(obj("a", managedFields=[{"manager": "x"}], annotations={"k": "v"}))

    assert record is not None
    assert loads(record.raw)["metadata"] == {
        "name": "a",
        "namespace": "n",
        "uid": "uid-n-a",
        "resourceVersion": "1",
        "annotations": {"k": "v"},
    }


def test_entry_of_our_own_applies_is_kept_apart():
    ours = {"manager": "us", "operation": "Apply", "apiVersion": "v1", "time": "now", "fieldsV1": {"f:data": {}}}
    others = [{**ours, "manager": "them"}, {**ours, "operation": "Update"}, {**ours, "subresource": "status"}]

    record = record_of(obj("a", managedFields=[*others, ours]), field_manager="us")
    other = record_of(obj("a", managedFields=others), field_manager="us")

    assert record is not None
    assert other is not None
    assert loads(record.managed) == {"apiVersion": "v1", "fieldsV1": {"f:data": {}}}
    assert b"managedFields" not in record.raw
    assert other.managed == b""


def test_what_decisions_need_is_at_hand():
    record = record_of(obj("a", labels={"x": "y"}, ownerReferences=owned_by("p"), finalizers=["f"], deletionTimestamp="now", version=7))

    assert record is not None
    assert (record.key, record.resource_version, dict(record.labels)) == (("n", "a"), 7, {"x": "y"})
    assert record.owner is not None
    assert record.owner.uid == "uid-n-p"
    assert record.finalizers == ("f",)
    assert record.is_deleting


def test_what_has_no_name_or_uid_is_no_object():
    assert record_of({}) is None
    assert record_of({"metadata": {"name": "a"}}) is None
    assert record_of({"metadata": None}) is None


def test_a_version_that_is_no_number_counts_as_none():
    assert version_number("12") == 12
    assert version_number("opaque") == 0
    assert version_number("") == 0
