"""The customize hook's rules: what each form shows, by wire version and scope (specification §14's table), and how
often it is asked.
"""

from dataclasses import dataclass

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.decorator import Decorator, attaching
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import parent_resource
from metaloop.devkit.testbed.related import RelatedObjects, rule
from metaloop.devkit.testbed.story import THINGS, Story, three_config_maps

PLANETS = parent_resource("planets", namespaced=False)
"""A kind of parents that are in no namespace."""

_MAPS = "ConfigMap.v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A rule (`HOME`, `RED` and `BLUE` stand for namespaces), and the ConfigMaps that it shows, as the sync hook of the
    same version names them.
    """

    rule: JsonObject
    shown: frozenset[str]
    version: str = "v2"
    is_cluster_scoped: bool = False


def _case(rule: JsonObject, *shown: str, version: str = "v2", is_cluster_scoped: bool = False) -> Case:
    return Case(rule=rule, shown=frozenset(shown), version=version, is_cluster_scoped=is_cluster_scoped)


_ONES: JsonObject = {"matchLabels": {"k": "1"}}
_RED: JsonObject = {"matchLabels": {"color": "red"}}

CASES = {
    "labels": _case({"labelSelector": _ONES}, "HOME/a", "RED/b"),
    "label expressions": _case(
        {"labelSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["2", "3"]}]}}, "RED/a", "BLUE/a"
    ),
    "labels in a namespace": _case({"labelSelector": _ONES, "namespace": "RED"}, "RED/b"),
    "namespaces by label": _case({"namespaceSelector": _RED}, "RED/a", "RED/b"),
    "namespaces by label, objects by label": _case({"namespaceSelector": _RED, "labelSelector": _ONES}, "RED/b"),
    "a namespace": _case({"namespace": "BLUE"}, "BLUE/a"),
    "names": _case({"names": ["a"]}, "HOME/a", "RED/a", "BLUE/a"),
    "names in a namespace": _case({"names": ["a", "absent"], "namespace": "RED"}, "RED/a"),
    "nothing that exists": _case({"names": ["absent"], "namespace": "RED"}),
    "explicit nulls": _case({"names": None, "namespace": "BLUE", "labelSelector": None, "namespaceSelector": None}, "BLUE/a"),
    "v1: labels": _case({"labelSelector": _ONES}, "a", version="v1"),
    "v1: labels in its own namespace": _case({"labelSelector": _ONES, "namespace": "HOME"}, "a", version="v1"),
    "v1: names": _case({"names": ["a", "b"]}, "a", "b", version="v1"),
    "v1: names in its own namespace": _case({"names": ["b"], "namespace": "HOME"}, "b", version="v1"),
    "v1, cluster-scoped: labels": _case({"labelSelector": _ONES}, "HOME/a", "RED/b", version="v1", is_cluster_scoped=True),
    "v1, cluster-scoped: namespaces by label": _case({"namespaceSelector": _RED}, "RED/a", "RED/b", version="v1", is_cluster_scoped=True),
    "v1, cluster-scoped: names in a namespace": _case(
        {"names": ["a"], "namespace": "BLUE"}, "BLUE/a", version="v1", is_cluster_scoped=True
    ),
    "cluster-scoped: a namespace": _case({"namespace": "RED"}, "RED/a", "RED/b", is_cluster_scoped=True),
}


@pytest.mark.parametrize("name", CASES)
async def test_rule_shows_what_it_selects(story: Story, name: str) -> None:
    case = CASES[name]
    related = await _in_three_namespaces(story, is_cluster_scoped=case.is_cluster_scoped)

    await related.controller(lambda _: [related.placed(case.rule)], answer=_nothing, version=case.version)
    await story.parent(story.name)

    await eventually(lambda: related.shows(story.name, _MAPS, {related.key(each) for each in case.shown}))


async def test_rules_of_one_resource_show_their_objects_together(story: Story) -> None:
    related = await _in_three_namespaces(story)
    rules = [related.placed({"names": ["a"], "namespace": "RED"}), related.placed({"labelSelector": _ONES})]

    await related.controller(lambda _: rules, version="v2")
    await story.parent("p")

    await eventually(lambda: related.shows("p", _MAPS, {related.key(each) for each in ("RED/a", "HOME/a", "RED/b")}))


async def test_cluster_scoped_objects_are_shown_by_name_and_label_whatever_the_namespace(story: Story) -> None:
    related = await _in_three_namespaces(story)
    by_label = {"labelSelector": {"matchLabels": {"color": "red", "story": story.name}}, "namespace": story.name}

    await related.controller(lambda _: [rule(NAMESPACES, **by_label), rule(NAMESPACES, names=[story.name])], version="v2")
    await story.parent("p")

    await eventually(lambda: related.shows("p", "Namespace.v1", {story.name, related.red}))


async def test_group_is_there_though_nothing_is_selected(story: Story) -> None:
    related = RelatedObjects(story)
    await related.controller(lambda _: [rule(CONFIG_MAPS, names=["absent"]), rule(NAMESPACES, names=["absent"])])

    await story.parent("p")

    await eventually(lambda: story.settled("p"))
    assert story.calls()[0].request["related"] == {"ConfigMap.v1": {}, "Namespace.v1": {}}


async def test_without_customize_hook_there_are_no_related_objects(story: Story) -> None:
    await story.controller()

    await story.parent("p")

    await eventually(lambda: story.settled("p"))
    assert story.calls()[0].request["related"] == {}


async def test_answer_without_rules_shows_nothing(story: Story) -> None:
    related = RelatedObjects(story)
    await related.controller(lambda _: [])

    await story.parent("p")

    await eventually(lambda: story.settled("p"))
    assert story.calls()[0].request["related"] == {}


async def test_customize_hook_is_shown_controller_and_parent(story: Story) -> None:
    related = RelatedObjects(story)
    await related.controller(lambda _: [])

    parent = await story.parent("p")

    await eventually(lambda: story.settled("p"))
    request = story.calls("customize")[0].request
    assert set(request) == {"controller", "parent"}
    assert unstructured.uid(unstructured.child_object(request, "parent")) == unstructured.uid(parent)


async def test_rules_are_asked_for_once_for_one_state_of_the_parent(story: Story) -> None:
    """Changes of children and of related objects, and resyncs, ask nothing: the hook could not answer otherwise."""
    related = RelatedObjects(story)
    await related.controller(lambda _: [rule(CONFIG_MAPS, names=["source"])], answer=_no_status, resyncPeriodSeconds=1)
    await story.parent("p", text="t")
    await eventually(lambda: story.shows("p", text="t"))
    await eventually(lambda: story.called(2))

    await related.config_map("source", text="1")
    await eventually(lambda: related.shows("p", _MAPS, {"source"}))
    await story.cluster.patch(CONFIG_MAPS, story.name, "p-1", {"data": {"text": "wrong"}})
    await eventually(lambda: story.shows("p", text="t"))
    await eventually(lambda: story.last_call_shows("p"))
    calls = len(story.calls())
    await eventually(lambda: story.called(calls + 2))

    # Once for the new parent, and once for the status that its first sync wrote, with the observed generation.
    assert len(story.calls("customize")) == 2


@pytest.mark.parametrize("edit", ["labels", "annotations", "spec"])
async def test_rules_follow_any_change_of_the_parent(story: Story, edit: str) -> None:
    """Labels and annotations do not count as a new generation, and count here all the same."""

    def by_what_the_parent_says(parent: JsonObject) -> list[JsonObject]:
        where = (
            unstructured.child_object(parent, "spec") if edit == "spec" else unstructured.child_object(unstructured.metadata(parent), edit)
        )
        return [rule(CONFIG_MAPS, names=[unstructured.text(where, "wants") or "first"])]

    related = RelatedObjects(story)
    await related.config_map("first")
    await related.config_map("second")
    await related.controller(by_what_the_parent_says)
    await story.parent("p")
    await eventually(lambda: related.shows("p", _MAPS, {"first"}))

    change: JsonObject = {"spec": {"wants": "second"}} if edit == "spec" else {"metadata": {edit: {"wants": "second"}}}
    await story.cluster.patch(THINGS, story.name, "p", change)

    await eventually(lambda: related.shows("p", _MAPS, {"second"}))


async def test_rules_follow_any_change_of_the_controller(story: Story) -> None:
    related = RelatedObjects(story)
    await related.config_map("first")
    await related.config_map("second")
    await related.controller(lambda _: [rule(CONFIG_MAPS, names=["first"])])
    await story.parent("p")
    await eventually(lambda: related.shows("p", _MAPS, {"first"}))

    related.set_rules(lambda _: [rule(CONFIG_MAPS, names=["second"])])
    await story.edit(resyncPeriodSeconds=3600)

    await eventually(lambda: related.shows("p", _MAPS, {"second"}))


async def test_finalize_hook_is_shown_related_objects_too(story: Story) -> None:
    related = RelatedObjects(story)
    await related.config_map("source")
    hooks = related.hooks(lambda _: [rule(CONFIG_MAPS, names=["source"])])
    finalize = story.hook("finalize", lambda request: {**three_config_maps(request), "finalized": True})
    await story.controller(hooks={**hooks, "finalize": finalize})
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    await story.cluster.delete(THINGS, story.name, "p")

    await eventually(lambda: story.called(1, "finalize"))
    shown = unstructured.child_object(story.calls("finalize")[0].request, "related")
    assert set(unstructured.child_object(shown, _MAPS)) == {"source"}


async def test_decorators_have_related_objects_as_composites_have(story: Story) -> None:
    related = RelatedObjects(story)
    await related.config_map("source")
    decorator = Decorator(story=story, name=story.name)
    customize = decorator.hook("customize", lambda _: {"relatedResources": [rule(CONFIG_MAPS, names=["source"])]})
    await decorator.install(attaching("a"), THINGS, hooks={"sync": decorator.hook("sync", attaching("a")), "customize": customize})

    await story.parent("p")

    await eventually(lambda: decorator.attached({"thing-p-a": ""}))
    shown = unstructured.child_object(decorator.calls()[0].request, "related")
    assert set(unstructured.child_object(shown, _MAPS)) == {"source"}
    assert set(decorator.calls("customize")[0].request) == {"controller", "parent"}
    await related.config_map("source", text="changed")
    await eventually(lambda: _text_shown(decorator, "changed"))
    await steadily(decorator.no_more_than(1, "customize"), for_seconds=0.3)


def _nothing(_: JsonObject) -> JsonObject:
    return {"children": []}


def _no_status(request: JsonObject) -> JsonObject:
    return {"children": three_config_maps(request)["children"]}


async def _text_shown(decorator: Decorator, text: str) -> None:
    related = unstructured.child_object(unstructured.child_object(decorator.calls()[-1].request, "related"), _MAPS)
    data = unstructured.child_object(unstructured.child_object(related, "source"), "data")
    expect(data.get("text") == text, f"the related object's data are {data}")


async def _in_three_namespaces(story: Story, *, is_cluster_scoped: bool = False) -> RelatedObjects:
    """ConfigMaps in three namespaces: a (k=1) and b in the parent's own; a (k=2) and b (k=1) in a red one, a (k=3) in a
    blue one.
    """
    if is_cluster_scoped:
        await install_parent(story.cluster, PLANETS)
        story.parents = PLANETS
    related = RelatedObjects(story)
    await related.namespace("red")
    await related.namespace("blue")
    for namespace, name, k in (
        (story.name, "a", "1"),
        (story.name, "b", "0"),
        (related.red, "a", "2"),
        (related.red, "b", "1"),
        (related.blue, "a", "3"),
    ):
        await related.config_map(name, namespace=namespace, k=k)
    return related
