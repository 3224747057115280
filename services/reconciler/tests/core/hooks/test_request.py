"""The JSON that a sync hook is sent, byte for byte where that matters."""

from dataclasses import replace

import pytest
from builders import (
    CLUSTER_THINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    a_controller,
    a_parent,
    config_map,
    group,
    observed,
    stored,
)

from metaloop.common.api import composite
from metaloop.common.api.composite import parse_composite
from metaloop.common.api.hook import Hook, HookVersion
from metaloop.common.http.body import whole
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import ObservedGroup
from metaloop.reconciler.core.hooks.request import MANY_OBJECTS, LargeRequest, group_key, object_maps, sync_request
from metaloop.reconciler.core.model import ChildGroup, RequestObjects

HERE, THERE = stored(config_map("here")), stored(config_map("there"), namespace="elsewhere")
SMALLEST: JsonObject = {"spec": {"parentResource": {"apiVersion": "v1", "resource": "pods"}, "hooks": {"sync": {}}}}
CLUSTER_WIDE = stored({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "wide"}}, namespace="")


def hook(version: HookVersion) -> Hook:
    """A sync hook of this wire version."""
    return Hook(name="sync", version=version, strict=False, webhook=None)


def test_request_has_five_keys_and_the_objects_as_they_are():
    controller, parent = a_controller(), a_parent()
    seen = replace(observed(parent=parent), controller=parse_composite(controller))

    body = sync_request(seen, RequestObjects(children=(group(CONFIG_MAPS, HERE),), related=()), hook=hook("v1"), keys=composite.KEYS)

    assert loads(whole(body)) == {
        "controller": controller,
        "parent": parent,
        "children": {"ConfigMap.v1": {"here": HERE}},
        "related": {},
        "finalizing": False,
    }


def test_request_of_an_empty_world_is_this_text():
    seen = observed(parent={"metadata": {}, "spec": {"selector": {"matchLabels": {"a": "b"}}}})
    seen = replace(seen, controller=parse_composite(SMALLEST))

    body = sync_request(
        seen, RequestObjects(children=(group(DEPLOYMENTS), group(CONFIG_MAPS)), related=()), hook=hook("v2"), keys=composite.KEYS
    )

    assert body == (
        b'{"controller":{"spec":{"parentResource":{"apiVersion":"v1","resource":"pods"},"hooks":{"sync":{}}}},"parent":{"metadata":{},"spec":{"selector":{"matchLabels":{"a":"b"}}}},'
        b'"children":{"Deployment.apps/v1":{},"ConfigMap.v1":{}},"related":{},"finalizing":false}'
    )


@pytest.mark.parametrize(
    ("info", "key"), [(CONFIG_MAPS, "ConfigMap.v1"), (DEPLOYMENTS, "Deployment.apps/v1"), (CLUSTER_THINGS, "ClusterThing.example.com/v1")]
)
def test_groups_are_named_by_kind_and_version(info: ResourceInfo, key: str):
    assert group_key(info) == key


NAMES: dict[str, tuple[HookVersion, str, ChildGroup, list[str]]] = {
    # what it shows: (version, the parent's namespace, the objects, their names)
    "v1 in the parent's namespace: the name": ("v1", "default", group(CONFIG_MAPS, HERE), ["here"]),
    "v1 in another namespace: left out": ("v1", "default", group(CONFIG_MAPS, HERE, THERE), ["here"]),
    "v1 cluster-scoped under a namespaced parent: left out": ("v1", "default", group(NAMESPACES, CLUSTER_WIDE), []),
    "v1 under a cluster-scoped parent: with namespace": ("v1", "", group(CONFIG_MAPS, THERE, HERE), ["default/here", "elsewhere/there"]),
    "v1 cluster-scoped under a cluster-scoped parent: the name": ("v1", "", group(NAMESPACES, CLUSTER_WIDE), ["wide"]),
    "v2 always with namespace": ("v2", "default", group(CONFIG_MAPS, THERE, HERE), ["default/here", "elsewhere/there"]),
    "v2 cluster-scoped: the name": ("v2", "default", group(NAMESPACES, CLUSTER_WIDE), ["wide"]),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES.keys())
def test_objects_are_named_as_the_version_spells_them(names: tuple[HookVersion, str, ChildGroup, list[str]]):
    version, parent_namespace, children, expected = names

    [objects] = object_maps([children], version=version, parent_namespace=parent_namespace).values()

    assert list(objects) == expected


def test_objects_are_in_the_order_of_their_names_whatever_the_cache_says():
    objects: list[JsonObject] = [stored(config_map(name)) for name in ("b", "c", "a")]

    [named] = object_maps([group(CONFIG_MAPS, *objects)], version="v1", parent_namespace="default").values()

    assert list(named) == ["a", "b", "c"]


def many(count: int) -> ChildGroup:
    return group(CONFIG_MAPS, *[stored(config_map(f"map-{index}")) for index in range(count)])


@pytest.mark.parametrize("count", [MANY_OBJECTS, MANY_OBJECTS + 1])
def test_request_with_many_objects_is_the_same_text_made_while_it_is_sent(count: int):
    seen = replace(observed(), controller=parse_composite(a_controller()))
    related = ObservedGroup(info=CONFIG_MAPS, objects=many(2).objects)
    objects = RequestObjects(children=(many(count), group(DEPLOYMENTS)), related=(related,))

    body = sync_request(seen, objects, hook=hook("v1"), keys=composite.KEYS)

    few = [
        sync_request(seen, RequestObjects(children=(group(CONFIG_MAPS, each),), related=()), hook=hook("v1"), keys=composite.KEYS)
        for each in objects.children[0].objects
    ]
    text = loads(whole(body))
    assert isinstance(body, LargeRequest) is (count + 2 > MANY_OBJECTS)
    assert list(text) == ["controller", "parent", "children", "related", "finalizing"]
    assert list(text["children"]["ConfigMap.v1"]) == sorted(f"map-{index}" for index in range(count))
    assert text["children"]["Deployment.apps/v1"] == {}
    assert len(text["related"]["ConfigMap.v1"]) == 2
    assert text["children"]["ConfigMap.v1"] == {
        name: obj for each in few for name, obj in loads(whole(each))["children"]["ConfigMap.v1"].items()
    }


def test_request_that_is_made_while_it_is_sent_can_be_sent_again():
    seen = replace(observed(), controller=parse_composite(a_controller()))

    body = sync_request(seen, RequestObjects(children=(many(MANY_OBJECTS + 1),), related=()), hook=hook("v1"), keys=composite.KEYS)

    assert whole(body) == whole(body)
