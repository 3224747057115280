"""Dynamic apply: how it updates children that were written in other ways before, and how it recreates."""

from builders import CONFIG_MAPS, DYNAMIC_APPLY, a_parent, config_map, stored

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.apply.last_applied import new_child
from metaloop.reconciler.core.apply.schema import guessed_schema
from metaloop.reconciler.core.children.changes import Drifted
from metaloop.reconciler.core.children.dynamic_apply import DynamicApply
from metaloop.reconciler.core.model import DeleteChild, DesiredChild, RecreateChild

PARENT = a_parent()


def desired(**data: str) -> DesiredChild:
    """A desired ConfigMap."""
    obj = config_map("a", data={**data}, namespace="default")
    return DesiredChild(info=CONFIG_MAPS, method="Recreate", namespace="default", name="a", obj=obj)


def drifted(observed: JsonObject, wanted: DesiredChild) -> Drifted:
    """The desired ConfigMap as a drifted child."""
    return Drifted(desired=wanted, observed=observed, applied=DYNAMIC_APPLY.applied(observed, wanted))


def test_what_was_applied_server_side_and_is_desired_no_longer_is_removed():
    observed = stored(config_map("a", data={"ours": "1", "gone": "2", "theirs": "3"}), owner=PARENT)
    entry: JsonObject = {"apiVersion": "v1", "fieldsV1": {"f:data": {"f:ours": {}, "f:gone": {}}}}

    applied = DynamicApply(schemas=guessed_schema, managed_fields={"uid-of-a": entry}).applied(observed, desired(ours="1"))

    assert applied.is_changed
    assert applied.obj["data"] == {"ours": "1", "theirs": "3"}
    assert LAST_APPLIED_ANNOTATION in unstructured.annotations(applied.obj)


def test_annotation_counts_for_more_than_what_was_once_applied_server_side():
    observed = stored(new_child(config_map("a", data={"ours": "1"}, namespace="default"), parent=PARENT))
    observed["data"] = {"ours": "1", "theirs": "2"}
    entry: JsonObject = {"apiVersion": "v1", "fieldsV1": {"f:data": {"f:ours": {}, "f:theirs": {}}}}

    assert not DynamicApply(schemas=guessed_schema, managed_fields={"uid-of-a": entry}).applied(observed, desired(ours="1")).is_changed


def test_new_wish_deletes_if_it_can_be_created():
    observed = stored(new_child(config_map("a", data={"ours": "1"}, namespace="default"), parent=PARENT))

    action = DYNAMIC_APPLY.recreated(drifted(observed, desired(ours="2")))

    assert isinstance(action, DeleteChild)
    assert action.successor == desired(ours="2").obj


def test_drift_from_an_old_wish_only_deletes_if_the_api_server_confirms_it():
    observed = stored(new_child(config_map("a", data={"ours": "1"}, namespace="default"), parent=PARENT))
    observed["data"] = {"ours": "drifted"}

    action = DYNAMIC_APPLY.recreated(drifted(observed, desired(ours="1")))

    assert isinstance(action, RecreateChild)
    assert (action.obj["data"], action.observed, action.is_applied) == ({"ours": "1"}, observed, False)


def test_unremembered_child_goes_only_if_the_api_server_says_that_it_differs():
    adopted = stored(config_map("a", data={"ours": "1"}, namespace="default"), owner=PARENT)

    assert isinstance(DYNAMIC_APPLY.recreated(drifted(adopted, desired(ours="2"))), RecreateChild)


def test_strings_of_a_secret_are_compared_as_data():
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "namespace": "default"},
        "stringData": {"k": "plain"},
    }
    wanted = DesiredChild(info=CONFIG_MAPS, method="InPlace", namespace="default", name="a", obj=secret)
    created = new_child(secret, parent=PARENT)
    observed = stored({**{key: value for key, value in created.items() if key != "stringData"}, "data": {"k": "cGxhaW4="}})

    assert not DYNAMIC_APPLY.applied(observed, wanted).is_changed
    repaired = DYNAMIC_APPLY.applied({**observed, "data": {"k": "eA=="}}, wanted)
    assert (repaired.is_changed, repaired.obj["data"], "stringData" in repaired.obj) == (True, {"k": "cGxhaW4="}, False)
    assert '"stringData":{"k":"plain"}' in unstructured.annotations(repaired.obj)[LAST_APPLIED_ANNOTATION]


def test_whole_numbers_are_sent_and_remembered_as_integers():
    wanted = desired(key="x")
    wanted.obj["spec"] = {"replicas": 3.0, "share": 0.5}

    created = DYNAMIC_APPLY.created(wanted, parent=PARENT).obj

    assert repr(created["spec"]) == "{'replicas': 3, 'share': 0.5}"
    assert '"spec":{"replicas":3,"share":0.5}' in unstructured.annotations(created)[LAST_APPLIED_ANNOTATION]
