"""Whether an apply would change anything, judged by the fields that we own and by the observed object."""

from typing import Any

import pytest
from builders import PARENT_UID, a_parent
from known_schemas import GADGET, GADGETS

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references, reference_to
from metaloop.reconciler.core.apply.last_applied import ApplyResult
from metaloop.reconciler.core.apply.schema import NO_SCHEMA, Schema, guessed_schema
from metaloop.reconciler.core.children.changes import Drifted
from metaloop.reconciler.core.children.server_side_apply import ServerSideApply
from metaloop.reconciler.core.model import DesiredChild

OWNER: JsonObject = {f'k:{{"uid":"{PARENT_UID}"}}': {}}


def desired(spec: JsonObject, **metadata: Any) -> DesiredChild:
    """A desired Gadget."""
    obj: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Gadget",
        "metadata": {"name": "a", "namespace": "default", **metadata},
        "spec": spec,
    }
    return DesiredChild(info=GADGETS, method="InPlace", namespace="default", name="a", obj=obj)


def existing(spec: JsonObject, **metadata: Any) -> JsonObject:
    """An existing Gadget that the parent controls."""
    own: JsonObject = {"name": "a", "namespace": "default", "uid": "uid-of-a", "ownerReferences": [reference_to(a_parent())], **metadata}
    return {"apiVersion": "apps/v1", "kind": "Gadget", "metadata": own, "spec": spec, "status": {"ready": True}}


def owned(spec: JsonObject, *, api_version: str = "apps/v1", metadata: JsonObject | None = None) -> dict[str, JsonObject]:
    """Our entry in its `managedFields`."""
    fields: JsonObject = {"f:metadata": {"f:ownerReferences": {**OWNER}, **(metadata or {})}, **({"f:spec": spec} if spec else {})}
    return {"uid-of-a": {"apiVersion": api_version, "fieldsV1": fields}}


def applied(wanted: DesiredChild, observed: JsonObject, managed: dict[str, JsonObject], *, schema: Schema = GADGET) -> ApplyResult:
    """The result of applying."""
    return ServerSideApply(schemas=lambda _: schema, managed_fields=managed).applied(observed, wanted)


TCP: JsonObject = {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}}}
UDP: JsonObject = {'k:{"port":53,"protocol":"UDP"}': {".": {}, "f:port": {}, "f:protocol": {}}}

CURRENT: dict[str, tuple[JsonObject, JsonObject, JsonObject]] = {
    # what it shows: (desired, observed, what we own), each the spec
    "a scalar": ({"replicas": 1}, {"replicas": 1}, {"f:replicas": {}}),
    "defaults and other managers' fields": ({"replicas": 1}, {"replicas": 1, "other": 2}, {"f:replicas": {}}),
    "an equal number": ({"replicas": 1.0}, {"replicas": 1}, {"f:replicas": {}}),
    "an equal quantity": ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}, {"f:limits": {"f:cpu": {}}}),
    "base64 with a line break": ({"token": "dmFs\ndWU="}, {"token": "dmFsdWU="}, {"f:token": {}}),
    "a zero that was dropped": ({"hostNetwork": False}, {}, {"f:hostNetwork": {}}),
    "an empty map and list that were dropped": ({"limits": {}, "ports": []}, {}, {"f:limits": {}, "f:ports": {}}),
    "an empty map that others filled": ({"limits": {}}, {"limits": {"cpu": "1"}}, {}),
    "a zero that others fill": ({"nodePort": 0, "targetPort": 0}, {"nodePort": 30000, "targetPort": 80}, {}),
    "an explicit null": ({"replicas": None}, {"replicas": 1}, {}),
    "a port without protocol, beside the other protocol": (
        {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]},
        {"ports": [{"port": 53, "protocol": "UDP", "nodePort": 2}, {"port": 53, "protocol": "TCP", "nodePort": 1}]},
        {"f:ports": {**TCP, **UDP}},
    ),
    "elements of others": (
        {"ports": [{"port": 53}]},
        {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 80, "protocol": "TCP"}]},
        {"f:ports": {**TCP}},
    ),
    "values of others in a set": ({"names": ["a"]}, {"names": ["b", "a"]}, {"f:names": {'v:"a"': {}}}),
    "known defaults in an atomic list": (
        {"rules": [{"host": "x"}]},
        {"rules": [{"host": "x", "apiGroup": "rbac.authorization.k8s.io"}]},
        {"f:rules": {}},
    ),
    "a quantity in an atomic list": ({"rules": [{"limit": 0.5}]}, {"rules": [{"limit": "500m"}]}, {"f:rules": {}}),
    "an atomic object": ({"selector": {"matchLabels": {"a": "b"}}}, {"selector": {"matchLabels": {"a": "b"}}}, {"f:selector": {}}),
}


@pytest.mark.parametrize("case", CURRENT.values(), ids=CURRENT.keys())
def test_child_that_is_as_we_applied_it_is_current(case: tuple[JsonObject, JsonObject, JsonObject]):
    spec, observed, fields = case

    result = applied(desired(spec), existing(observed), owned(fields))

    assert (result.is_changed, result.is_recorded) == (False, True)


CHANGED: dict[str, tuple[JsonObject, JsonObject, JsonObject]] = {
    "another value": ({"replicas": 2}, {"replicas": 1}, {"f:replicas": {}}),
    "a value that somebody changed": ({"replicas": 2}, {"replicas": 3}, {}),
    "a value that somebody removed": ({"replicas": 2}, {}, {}),
    "a value that is new": ({"replicas": 1, "new": "x"}, {"replicas": 1}, {"f:replicas": {}}),
    "a value no longer desired": ({}, {"replicas": 1}, {"f:replicas": {}}),
    "a zero that somebody changed": ({"hostNetwork": False}, {"hostNetwork": True}, {}),
    "another type": ({"replicas": {"a": 1}}, {"replicas": 1}, {"f:replicas": {}}),
    "an element no longer desired": (
        {"ports": [{"port": 53}]},
        {"ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]},
        {"f:ports": {**TCP, **UDP}},
    ),
    "an element that is gone": ({"ports": [{"port": 53}]}, {"ports": []}, {"f:ports": {**TCP}}),
    "a field of an element no longer desired": (
        {"ports": [{"port": 53}]},
        {"ports": [{"port": 53, "protocol": "TCP", "name": "x"}]},
        {"f:ports": {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}}},
    ),
    "a new element": (
        {"ports": [{"port": 53}, {"port": 80}]},
        {"ports": [{"port": 53, "protocol": "TCP"}]},
        {"f:ports": {**TCP}},
    ),
    "a value no longer desired in a set": ({"names": ["a"]}, {"names": ["a", "b"]}, {"f:names": {'v:"a"': {}, 'v:"b"': {}}}),
    "an emptied list-map": ({"ports": []}, {"ports": [{"port": 53, "protocol": "TCP"}]}, {"f:ports": {**TCP}}),
    "a field no longer desired in an atomic list": ({"rules": [{"host": "x"}]}, {"rules": [{"host": "x", "path": "/"}]}, {"f:rules": {}}),
    "an emptied atomic object": ({"selector": {}}, {"selector": {"matchLabels": {"a": "b"}}}, {"f:selector": {}}),
    "a value that was dropped and is not owned": ({"replicas": 0}, {}, {}),
}


@pytest.mark.parametrize("case", CHANGED.values(), ids=CHANGED.keys())
def test_child_that_differs_is_changed(case: tuple[JsonObject, JsonObject, JsonObject]):
    spec, observed, fields = case

    assert applied(desired(spec), existing(observed), owned(fields)).is_changed


def test_value_that_others_own_alone_is_applied_to_own_it():
    result = applied(desired({"replicas": 1}), existing({"replicas": 1}), owned({}))

    assert (result.is_changed, result.is_recorded) == (False, False)


def test_field_that_we_own_alone_of_what_is_not_there_is_given_up():
    result = applied(desired({}), existing({}), owned({"f:replicas": {}}))

    assert (result.is_changed, result.is_recorded) == (False, False)


def test_labels_of_others_are_no_difference_and_ours_are():
    observed = existing({}, labels={"ours": "drifted", "theirs": "x"})

    assert applied(desired({}, labels={"ours": "right"}), observed, owned({}, metadata={"f:labels": {}})).is_changed
    assert not applied(desired({}, labels={"ours": "drifted"}), observed, owned({}, metadata={"f:labels": {"f:ours": {}}})).is_changed


def test_child_that_was_never_applied_is_judged_by_its_values():
    as_desired = applied(desired({"replicas": 1}), existing({"replicas": 1, "default": 2}), {})
    different = applied(desired({"replicas": 1}), existing({"replicas": 2}), {})

    assert (as_desired.is_changed, as_desired.is_recorded) == (False, False)
    assert different.is_changed


def test_child_that_dynamic_apply_wrote_is_judged_by_its_annotation():
    """Only the annotation records a field that the hook no longer desires."""
    last = '{"spec":{"replicas":1,"gone":2}}'
    observed = existing({"replicas": 1, "gone": 2}, annotations={LAST_APPLIED_ANNOTATION: last})

    assert applied(desired({"replicas": 1}), observed, {}).is_changed
    assert not applied(desired({"replicas": 1, "gone": 2}), observed, owned({"f:replicas": {}, "f:gone": {}})).is_changed
    assert not applied(desired({"replicas": 1, "gone": 2}), observed, owned({"f:replicas": {}, "f:gone": {}})).is_recorded


def test_fields_of_another_version_say_nothing():
    result = applied(desired({"replicas": 1}), existing({"replicas": 1}), owned({"f:replicas": {}}, api_version="apps/v1beta1"))

    assert (result.is_changed, result.is_recorded) == (False, False)


def test_configuration_has_the_controller_and_nothing_of_the_api_servers():
    observed = existing({"replicas": 1}, resourceVersion="9")
    echo = desired({"replicas": 1, "none": None}, uid="uid-of-a", resourceVersion="9", creationTimestamp=None)
    echo.obj["status"] = {"ready": True}

    sent = applied(echo, observed, {}).obj

    assert sent == {
        "apiVersion": "apps/v1",
        "kind": "Gadget",
        "metadata": {"name": "a", "namespace": "default", "ownerReferences": [reference_to(a_parent())]},
        "spec": {"replicas": 1},
    }


def test_zero_that_others_fill_is_not_sent():
    configuration = applied(desired({"nodePort": 0, "replicas": 0}), existing({"nodePort": 30000, "replicas": 0}), {}).obj

    assert configuration["spec"] == {"replicas": 0}


def test_owners_that_the_hook_names_are_sent_beside_the_controller():
    other: JsonObject = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "other"}

    sent = applied(desired({}, ownerReferences=[other, reference_to(a_parent())]), existing({}), {}).obj

    assert [reference["uid"] for reference in owner_references(sent)] == ["other", PARENT_UID]


def test_without_a_schema_known_forms_still_mean_the_same():
    observed = existing({"ports": [{"port": 53, "protocol": "TCP"}]})

    assert not applied(desired({"ports": [{"port": 53}]}), observed, owned({"f:ports": {**TCP}}), schema=NO_SCHEMA).is_changed


def test_created_child_is_controlled_by_the_parent():
    action = ServerSideApply(schemas=guessed_schema, managed_fields={}).created(desired({"replicas": 1.0}), parent=a_parent())

    assert action.observed is None
    assert [reference["uid"] for reference in owner_references(action.obj)] == [PARENT_UID]
    assert "annotations" not in unstructured.metadata(action.obj)
    assert repr(action.obj["spec"]) == "{'replicas': 1}"


def test_recreation_asks_before_it_deletes():
    observed, wanted = existing({"replicas": 1}), desired({"replicas": 2})
    result = applied(wanted, observed, owned({"f:replicas": {}}))

    action = ServerSideApply(schemas=guessed_schema, managed_fields={}).recreated(
        Drifted(desired=wanted, observed=observed, applied=result)
    )

    assert (action.is_applied, action.observed, action.desired) == (True, observed, result.obj)
