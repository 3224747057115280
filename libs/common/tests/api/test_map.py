"""MapController specs: their values, the field that an error names, and the keys of inputs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.api.map import input_selector, map_key, parse_map
from metaloop.common.errors import InvalidParent, InvalidSpec
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceId

WEBHOOK: JsonObject = {"webhook": {"url": "http://hook.example/map"}}
SCHEDULES: JsonObject = {"apiVersion": "ex.io/v1", "resource": "schedules"}
CLAIMS: JsonObject = {"apiVersion": "v1", "resource": "persistentvolumeclaims"}
SNAPSHOTS: JsonObject = {"apiVersion": "snap.io/v1", "resource": "snapshots"}


def map_controller(**spec: object) -> JsonObject:
    """A MapController that maps claims to snapshots."""
    whole: dict[str, object] = {
        "parentResource": SCHEDULES,
        "inputResources": [CLAIMS],
        "outputResources": [SNAPSHOTS],
        "hooks": {"map": WEBHOOK},
        **spec,
    }
    return {"metadata": {"name": "m", "uid": "u"}, "spec": whole}  # type: ignore[dict-item]


def test_parents_inputs_and_outputs_are_read():
    parsed = parse_map(map_controller(parentResource={**SCHEDULES, "labelSelector": {"matchLabels": {"a": "b"}}}, resyncPeriodSeconds=5))

    assert [rule.resource for rule in parsed.parents] == [ResourceId("ex.io/v1", "schedules")]
    assert parsed.parents[0].selects(labels={"a": "b"}, annotations={})
    assert not parsed.parents[0].selects(labels={}, annotations={})
    assert parsed.inputs == (ResourceId("v1", "persistentvolumeclaims"),)
    assert [(rule.resource.resource, rule.method) for rule in parsed.children] == [("snapshots", "OnDelete")]
    assert parsed.resync_period_seconds == 5


def test_tombstone_hook_is_optional():
    assert parse_map(map_controller()).tombstone_hook is None

    parsed = parse_map(map_controller(hooks={"map": WEBHOOK, "tombstone": {**WEBHOOK, "version": "v2"}}))

    assert parsed.tombstone_hook is not None
    assert (parsed.tombstone_hook.name, parsed.tombstone_hook.version) == ("tombstone", "v2")


def test_input_may_be_of_the_same_resource_as_output():
    parsed = parse_map(map_controller(outputResources=[CLAIMS]))

    assert parsed.children[0].resource == parsed.inputs[0]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"parentResource": None}, "spec.parentResource"),
        ({"parentResource": {"apiVersion": "v1"}}, "spec.parentResource.resource"),
        ({"parentResource": {**SCHEDULES, "revisionHistory": {}}}, "spec.parentResource.revisionHistory"),
        ({"parentResource": {**SCHEDULES, "ignoreStatusChanges": True}}, "spec.parentResource.ignoreStatusChanges"),
        ({"inputResources": []}, "spec.inputResources"),
        ({"inputResources": [CLAIMS, CLAIMS]}, "spec.inputResources[1]"),
        ({"inputResources": [{**CLAIMS, "labelSelector": {}}]}, "spec.inputResources[0].labelSelector"),
        ({"outputResources": []}, "spec.outputResources"),
        ({"outputResources": [SNAPSHOTS, SNAPSHOTS]}, "spec.outputResources[1]"),
        ({"outputResources": [SNAPSHOTS, SCHEDULES]}, "spec.outputResources[1]"),
        (
            {"outputResources": [{**SNAPSHOTS, "updateStrategy": {"method": "RollingInPlace"}}]},
            "spec.outputResources[0].updateStrategy.method",
        ),
        ({"hooks": {}}, "spec.hooks"),
        ({"hooks": {"tombstone": WEBHOOK}}, "spec.hooks.map"),
        ({"hooks": {"map": {}}}, "spec.hooks.map.webhook"),
        ({"hooks": {"map": WEBHOOK, "tombstone": {}}}, "spec.hooks.tombstone.webhook"),
        ({"hooks": {"map": WEBHOOK, "sync": WEBHOOK}}, "spec.hooks.sync"),
        ({"hooks": {"map": WEBHOOK, "finalize": WEBHOOK}}, "spec.hooks.finalize"),
        ({"hooks": {"map": WEBHOOK, "customize": WEBHOOK}}, "spec.hooks.customize"),
        ({"hooks": {"map": WEBHOOK, "reduce": WEBHOOK}}, "spec.hooks.reduce"),
        ({"childResources": [SNAPSHOTS]}, "spec.childResources"),
    ],
)
def test_invalid_field_is_named_by_its_path(spec: dict[str, object], field: str):
    with pytest.raises(InvalidSpec) as caught:
        parse_map(map_controller(**spec))

    assert caught.value.field == field


@pytest.mark.parametrize("spec", [{}, {"selector": None}, {"selector": {}}])
def test_parent_without_a_selector_selects_everything(spec: JsonObject):
    assert input_selector({"spec": spec}).is_empty


def test_parent_with_a_malformed_selector_is_invalid():
    with pytest.raises(InvalidParent) as caught:
        input_selector({"spec": {"selector": {"matchLabels": {"a": 1}}}})

    assert caught.value.field == "spec.selector.matchLabels"


def test_map_key_is_the_uid_that_the_api_server_gives():
    assert map_key("0b6e7b0e-6a2f-4d0c-9c57-6b2a1e1f9d53") == "0b6e7b0e-6a2f-4d0c-9c57-6b2a1e1f9d53"


@given(st.text(min_size=1))
def test_map_key_is_a_valid_label_value(uid: str):
    assert re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?", map_key(uid), re.ASCII)


@given(st.text(min_size=1), st.text(min_size=1))
def test_map_keys_of_different_inputs_differ(one: str, other: str):
    assert (map_key(one) == map_key(other)) == (one == other)
