"""Related objects, followed as they change: exactly the parents are asked again whose rules select what changed, and
nothing is watched for nobody.
"""

import asyncio

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, CRDS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import install_parent
from metaloop.devkit.testbed.manifests import parent, parent_resource
from metaloop.devkit.testbed.related import RelatedObjects, rule
from metaloop.devkit.testbed.story import THINGS, Story, answer_with

_MAPS = "ConfigMap.v1"
# A controller's status is written seldom, and never in its first ten seconds.
_TOLD_SECONDS = 40


async def test_only_the_parents_that_name_an_object_are_asked_about_its_change(story: Story) -> None:
    related = RelatedObjects(story)
    await related.controller(lambda parent: [rule(CONFIG_MAPS, names=[f"of-{unstructured.name(parent)}", "of-all"])], answer=_no_children)
    for name in ("p", "q", "r"):
        await related.config_map(f"of-{name}", text="before")
        await story.parent(name)
    for name in ("p", "q", "r"):
        await eventually(lambda name=name: related.shows(name, _MAPS, {f"of-{name}"}))
        await eventually(lambda name=name: story.rested(name, children=0))
    calls = {name: len(story.calls(parent=name)) for name in ("p", "q", "r")}
    customized = len(story.calls("customize"))

    await related.config_map("of-q", text="after")
    await eventually(lambda: _text_is(related, "q", "of-q", "after"))
    await steadily(story.no_more_than(calls["p"], parent="p"), for_seconds=0.3)
    assert {name: len(story.calls(parent=name)) - calls[name] for name in calls} == {"p": 0, "q": 1, "r": 0}

    await related.config_map("of-all")
    for name in ("p", "q", "r"):
        await eventually(lambda name=name: related.shows(name, _MAPS, {f"of-{name}", "of-all"}))
    assert {name: len(story.calls(parent=name)) - calls[name] for name in calls} == {"p": 1, "q": 2, "r": 1}
    assert len(story.calls("customize")) == customized


async def test_object_that_comes_into_a_selection_and_leaves_it_is_noticed(story: Story) -> None:
    related = RelatedObjects(story)
    selector = {"matchLabels": {"story": story.name, "wanted": "yes"}}
    await related.controller(lambda _: [rule(CONFIG_MAPS, labelSelector=selector)], answer=_no_children)
    await story.parent("p")
    await eventually(lambda: related.shows("p", _MAPS, set()))

    await related.config_map("a")
    await _label(story, "a", {"wanted": "yes"})
    await eventually(lambda: related.shows("p", _MAPS, {"a"}))
    await _label(story, "a", {"wanted": "no"})
    await eventually(lambda: related.shows("p", _MAPS, set()))
    await _label(story, "a", {"wanted": "yes"})
    await eventually(lambda: related.shows("p", _MAPS, {"a"}))
    await story.cluster.delete(CONFIG_MAPS, story.name, "a")
    await eventually(lambda: related.shows("p", _MAPS, set()))


async def test_namespace_whose_labels_change_comes_into_reach_and_leaves_it(story: Story) -> None:
    related = RelatedObjects(story)
    await related.namespace("red")
    await related.namespace("blue")
    await related.config_map("a", namespace=related.red)
    await related.config_map("b", namespace=related.blue)
    await related.controller(lambda _: [related.placed({"namespaceSelector": {"matchLabels": {"color": "red"}}})], version="v2")
    await story.parent("p")
    await eventually(lambda: related.shows("p", _MAPS, {f"{related.red}/a"}))

    await story.cluster.patch(NAMESPACES, "", related.blue, {"metadata": {"labels": {"color": "red"}}})
    await eventually(lambda: related.shows("p", _MAPS, {f"{related.red}/a", f"{related.blue}/b"}))
    await story.cluster.patch(NAMESPACES, "", related.red, {"metadata": {"labels": {"color": None}}})
    await eventually(lambda: related.shows("p", _MAPS, {f"{related.blue}/b"}))


async def test_new_namespace_that_is_selected_is_in_reach(story: Story) -> None:
    related = RelatedObjects(story)
    await related.controller(lambda _: [related.placed({"namespaceSelector": {"matchLabels": {"color": "red"}}})], version="v2")
    await story.parent("p")
    await eventually(lambda: related.shows("p", _MAPS, set()))

    await related.namespace("red")
    await related.config_map("a", namespace=related.red)

    await eventually(lambda: related.shows("p", _MAPS, {f"{related.red}/a"}))


async def test_object_deleted_while_the_hook_is_asked_is_missed_by_the_next_call(story: Story) -> None:
    related, asked, go_on = RelatedObjects(story), asyncio.Event(), asyncio.Event()

    async def waiting(request: JsonObject) -> JsonObject:
        asked.set()
        await go_on.wait()
        return answer_with(request, [])

    await related.config_map("a")
    await related.controller(lambda _: [rule(CONFIG_MAPS, names=["a"])], answer=waiting)
    await story.parent("p")
    await asyncio.wait_for(asked.wait(), timeout=30)
    assert set(related.shown("p", _MAPS)) == {"a"}

    await story.cluster.delete(CONFIG_MAPS, story.name, "a")
    go_on.set()

    await eventually(lambda: related.shows("p", _MAPS, set()))


async def test_kind_that_does_not_exist_yet_is_waited_for(story: Story) -> None:
    """It is said on the controller and on the parent, nothing is deleted meanwhile, and it heals by itself."""
    comets = _kind("comets")
    related = RelatedObjects(story)
    await related.controller(lambda _: [])
    await story.parent("p", text="t")
    await eventually(lambda: story.settled("p"))

    related.set_rules(lambda _: [rule(comets)])
    await story.change("p", text="t2")
    await eventually(lambda: story.warning(of="p", containing="comets"))
    await eventually(lambda: story.warning(of=story.name, containing="comets"))
    await eventually(lambda: story.ready(status="False", reason="WaitingForCRD"), within_seconds=_TOLD_SECONDS)
    assert await story.texts(of="p") == {"p-0": "t", "p-1": "t", "p-2": "t"}

    await install_parent(story.cluster, comets)
    await story.cluster.create(comets, parent(comets, "halley"), namespace=story.name)
    await eventually(lambda: related.shows("p", f"Comet.{comets.api_version}", {"halley"}))
    await eventually(lambda: story.shows("p", text="t2"))
    await eventually(lambda: story.ready(status="True", reason="Synced"), within_seconds=_TOLD_SECONDS)


async def test_kind_that_goes_away_is_waited_for_again(story: Story) -> None:
    meteors = _kind("meteors")
    await install_parent(story.cluster, meteors)
    related = RelatedObjects(story)
    await story.cluster.create(meteors, parent(meteors, "m"), namespace=story.name)
    await related.controller(lambda _: [rule(meteors)])
    await story.parent("p", text="t")
    await eventually(lambda: story.settled("p"))

    await story.cluster.delete(CRDS, "", f"meteors.{meteors.group}")
    await eventually(lambda: story.ready(status="False", reason="WaitingForCRD"), within_seconds=_TOLD_SECONDS)
    assert len(await story.config_maps(of="p")) == 3

    await install_parent(story.cluster, meteors)
    await story.cluster.create(meteors, parent(meteors, "n"), namespace=story.name)
    await eventually(lambda: related.shows("p", f"Meteor.{meteors.api_version}", {"n"}), within_seconds=30)
    await eventually(lambda: story.ready(status="True", reason="Synced"), within_seconds=_TOLD_SECONDS)


async def test_watch_starts_when_first_needed_and_stops_when_nobody_follows(story: Story) -> None:
    moons = _kind("moons")
    await install_parent(story.cluster, moons)
    related = RelatedObjects(story)
    await related.controller(lambda parent: [rule(moons)] if unstructured.name(parent) == "p" else [], answer=_no_children)
    await story.parent("q")
    await eventually(lambda: story.settled("q", children=0))
    assert not await _is_watched(story, moons)

    await story.parent("p")
    await eventually(lambda: related.shows("p", f"Moon.{moons.api_version}", set()))
    assert await _is_watched(story, moons)
    assert await _follows(story, "p")

    await story.cluster.delete(THINGS, story.name, "p")
    await eventually(lambda: _stopped(story, moons))
    await eventually(lambda: _unfollowed(story, "p"))


async def test_watch_stops_with_its_controller(story: Story) -> None:
    rings = _kind("rings")
    await install_parent(story.cluster, rings)
    related = RelatedObjects(story)
    await related.controller(lambda _: [rule(rings)], answer=_no_children)
    await story.parent("p")
    await eventually(lambda: story.settled("p", children=0))
    assert await _is_watched(story, rings)

    await story.end()

    await eventually(lambda: _stopped(story, rings))


async def test_watch_stops_when_nobody_is_asked_any_more_what_to_follow(story: Story) -> None:
    shadows = _kind("shadows")
    await install_parent(story.cluster, shadows)
    related = RelatedObjects(story)
    await related.controller(lambda _: [rule(shadows)], answer=_no_children)
    await story.parent("p")
    await eventually(lambda: story.settled("p", children=0))
    assert await _is_watched(story, shadows)

    await story.edit(hooks={"sync": story.hook("sync", _no_children)})

    await eventually(lambda: _stopped(story, shadows))
    await eventually(lambda: _unfollowed(story, "p"))


async def test_watcher_that_starts_anew_learns_what_is_followed(story: Story) -> None:
    related = RelatedObjects(story)
    await related.config_map("source", text="before")
    await related.controller(lambda _: [rule(CONFIG_MAPS, names=["source"])], answer=_no_children)
    await story.parent("p")
    await eventually(lambda: _text_is(related, "p", "source", "before"))

    await story.lab.stack.watcher.kill()
    await related.config_map("source", text="between")
    await story.lab.stack.watcher.start()

    await eventually(lambda: _text_is(related, "p", "source", "between"), within_seconds=30)
    await related.config_map("source", text="after")
    await eventually(lambda: _text_is(related, "p", "source", "after"))


async def test_at_rest_related_objects_cost_nothing(story: Story) -> None:
    related = RelatedObjects(story)
    await related.config_map("source")
    await related.controller(lambda _: [rule(CONFIG_MAPS, names=["source"])], resyncPeriodSeconds=1)
    await story.parent("p")
    await eventually(lambda: story.rested("p"))
    calls, customized, mark = len(story.calls()), len(story.calls("customize")), story.lab.audit.mark()

    await eventually(lambda: story.called(calls + 3))

    assert [each for each in await story.lab.audit.ours_since(mark) if each.namespace == story.name] == []
    assert len(story.calls("customize")) == customized


def _kind(plural: str) -> ResourceInfo:
    return parent_resource(plural)


def _no_children(request: JsonObject) -> JsonObject:
    return answer_with(request, [])


async def _label(story: Story, name: str, labels: dict[str, str]) -> None:
    await story.cluster.patch(CONFIG_MAPS, story.name, name, {"metadata": {"labels": {**labels}}})


async def _text_is(related: RelatedObjects, parent: str, name: str, text: str) -> None:
    data = unstructured.child_object(unstructured.child_object(related.shown(parent, _MAPS), name), "data")
    expect(data.get("text") == text, f"{parent} was shown {data} of {name}, not yet {text}")


async def _is_watched(story: Story, resource: ResourceInfo) -> bool:
    return any(each["resource"] == str(resource.id) for each in await story.lab.view("cache"))


async def _stopped(story: Story, resource: ResourceInfo) -> None:
    expect(not await _is_watched(story, resource), f"{resource.id} is watched")


async def _follows(story: Story, parent: str) -> bool:
    return any(f"{story.name}/{parent}" in str(each["key"]) for each in await story.lab.view("subscriptions"))


async def _unfollowed(story: Story, parent: str) -> None:
    expect(not await _follows(story, parent), f"{parent} still follows something")
