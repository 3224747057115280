"""The parent's status: what the hook says of it, for which generation, written once and written though a child failed;
and when a hook wants to be asked again.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, JsonValue, dumps
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.devkit.testbed.audit import tally
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, EVENTS
from metaloop.devkit.testbed.eventually import eventually, expect, steadily
from metaloop.devkit.testbed.lab import Lab, install
from metaloop.devkit.testbed.manifests import child_rule, config_map, crd, parent_resource
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of, three_config_maps

TYPED = parent_resource("typeds")
"""Parents whose status has a schema: what isn't in it is dropped by the API server."""

_FAILURES, _CHANGES = 40, 2000
"""More failures than an object gets events for; changes, which don't wait for a backoff, bring them about, several of
them at times one.
"""


@pytest_asyncio.fixture(loop_scope="session")
async def typed(lab: Lab, request: pytest.FixtureRequest) -> AsyncIterator[Story]:
    """A story of such parents."""
    manifest = crd(TYPED)
    version = unstructured.child_object(manifest, "spec")["versions"]
    status: JsonObject = {"type": "object", "properties": {"phase": {"type": "string"}, "observedGeneration": {"type": "integer"}}}
    assert isinstance(version, list)
    schema = unstructured.child_object(unstructured.child_object(version[0], "schema"), "openAPIV3Schema")  # type: ignore[arg-type]
    unstructured.child_object(schema, "properties")["status"] = status
    await install(lab.cluster, manifest)
    story = Story(lab=lab, name=f"typed-{len(request.node.name)}", parents=TYPED)
    await story.begin()
    yield story
    await story.end()


@pytest.mark.parametrize("answered", [None, {}, {"observedGeneration": 99}])
async def test_status_of_nothing_is_the_generation_alone(story: Story, answered: JsonValue) -> None:
    await story.controller(lambda _: {"status": answered, "children": []})
    await story.parent("p")
    await eventually(lambda: _status_is(story, "p", {"observedGeneration": 1}))

    await story.change("p", text="changed")

    await eventually(lambda: _status_is(story, "p", {"observedGeneration": 2}))


async def test_null_status_takes_away_what_an_earlier_answer_said(story: Story) -> None:
    await story.controller(lambda _: {"status": {"phase": "Good"}, "children": []})
    await story.parent("p")
    await eventually(lambda: _status_is(story, "p", {"phase": "Good", "observedGeneration": 1}))

    story.now_answers(lambda _: {"status": None, "children": []})
    await story.change("p", text="changed")

    await eventually(lambda: _status_is(story, "p", {"observedGeneration": 2}))


async def test_status_replaces_the_stored_one_whole(story: Story) -> None:
    """Also what somebody else put there: the status is its controller's."""
    await story.controller(lambda _: {"status": {"phase": "Good"}, "children": []})
    await story.parent("p")
    await eventually(lambda: _status_is(story, "p", {"phase": "Good", "observedGeneration": 1}))

    await story.cluster.patch(story.parents, story.name, "p", {"status": {"phase": "Bad", "foreign": True}}, subresource="status")

    await eventually(lambda: _status_is(story, "p", {"phase": "Good", "observedGeneration": 1}))


async def test_field_that_the_schema_drops_is_written_once_and_then_at_rest(typed: Story) -> None:
    await typed.controller(lambda _: {"status": {"phase": "Good", "unknown": 1}, "children": []}, resyncPeriodSeconds=1)
    await typed.parent("p")
    await eventually(lambda: _status_is(typed, "p", {"phase": "Good", "observedGeneration": 1}))
    await eventually(lambda: typed.last_call_shows("p"))
    mark, calls = typed.lab.audit.mark(), len(typed.calls())

    await eventually(lambda: typed.called(calls + 5), within_seconds=30)

    writes = [each for each in await typed.lab.audit.ours_since(mark) if each.is_write and each.resource == f"{TYPED.resource}/status"]
    # Each of the two reconcilers finds out for itself.
    assert len(writes) <= 2


async def test_status_that_its_schema_refuses_is_an_error_and_the_children_are_written(typed: Story) -> None:
    await typed.controller(lambda request: {"status": {"phase": 3}, "children": [*config_maps_of(request)]})

    await typed.parent("p", text="good")

    await eventually(lambda: typed.warning(of="p", containing="status"))
    await eventually(lambda: typed.shows("p", text="good"))


@pytest.mark.parametrize("size", [1_800_000, 2_500_000])
async def test_status_that_is_too_large_to_be_stored_is_told(story: Story, size: int) -> None:
    await story.controller(lambda request: {"status": {"much": "x" * size}, "children": [*config_maps_of(request)]})

    await story.parent("p", text="good")

    await eventually(lambda: story.warning(of="p", containing="write the parent's status"))
    await eventually(lambda: story.shows("p", text="good"))


async def test_status_is_written_though_a_child_failed_and_the_failure_is_told(story: Story) -> None:
    def one_is_invalid(request: JsonObject) -> JsonObject:
        return answer_with(request, [*config_maps_of(request), config_map("Not_A_Name", labels={"parent": "p"})])

    await story.controller(one_is_invalid)

    await story.parent("p")

    await eventually(lambda: story.settled("p"))
    await eventually(lambda: story.warning(of="p", containing="Not_A_Name"))


async def test_conflict_at_the_status_is_mended_without_anybody_hearing_of_it(story: Story) -> None:
    """The parent is written to by somebody else while its hook is asked, so that what was observed is over."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: JsonObject) -> JsonObject:
        asked.set()
        await go_on.wait()
        return three_config_maps(request)

    await story.controller(slow)
    await story.parent("p")
    await asyncio.wait_for(asked.wait(), 30)

    await story.cluster.patch(story.parents, story.name, "p", {"metadata": {"annotations": {"somebody": "else"}}})
    go_on.set()

    await eventually(lambda: story.settled("p"))
    with pytest.raises(AssertionError):
        await story.warning(of="p")


async def test_hook_is_asked_again_after_the_seconds_it_wanted(story: Story) -> None:
    await story.controller(lambda request: {**three_config_maps(request), "resyncAfterSeconds": 0.5})
    await story.parent("p")
    await eventually(lambda: story.rested("p"))
    mark, calls = story.lab.audit.mark(), len(story.calls())

    await eventually(lambda: story.called(calls + 4))

    times = [call.started_at for call in story.calls()[calls:]]
    assert all(later - earlier > 0.4 for earlier, later in itertools.pairwise(times))
    assert await _writes_in(story, mark) == Counter()


async def test_parents_are_looked_at_again_after_the_period_of_their_controller(story: Story) -> None:
    await story.controller(resyncPeriodSeconds=1)
    for name in ("p", "q"):
        await story.parent(name)
        await eventually(lambda name=name: story.rested(name))
    mark, calls = story.lab.audit.mark(), len(story.calls())

    await eventually(lambda: story.called(calls + 4))

    assert {call.parent_name for call in story.calls()[calls:]} == {"p", "q"}
    assert await _writes_in(story, mark) == Counter()


async def test_own_status_is_no_reason_to_ask_where_status_changes_are_ignored(story: Story) -> None:
    await story.controller(three_config_maps, parentResource=_ignoring(story))

    await story.parent("p")

    await eventually(lambda: story.called(2))
    await steadily(story.no_more_than(2))
    await story.change("p", text="after")
    await eventually(lambda: story.shows("p", text="after"))


async def test_data_of_a_kind_without_generation_count_though_status_changes_are_ignored(story: Story) -> None:
    """A Node, a PersistentVolume or an Endpoints has no generation that could tell: what is neither metadata nor status
    counts.
    """
    decorated: JsonObject = {
        "apiVersion": "metacontroller.k8s.io/v1alpha1",
        "kind": "DecoratorController",
        "metadata": {"name": story.name},
        "spec": {
            "resources": [
                {
                    "apiVersion": "v1",
                    "resource": "configmaps",
                    "ignoreStatusChanges": True,
                    "labelSelector": {"matchLabels": {"story": story.name}},
                }
            ],
            "hooks": {"sync": {"webhook": {"url": story.lab.webhook.on(story.name, lambda _: {"attachments": []})}}},
        },
    }
    await story.cluster.request("POST", "/apis/metacontroller.k8s.io/v1alpha1/decoratorcontrollers", body=dumps(decorated))
    await story.cluster.create(CONFIG_MAPS, config_map("data", labels={"story": story.name}, data={"text": "before"}), namespace=story.name)
    await eventually(lambda: story.called(1))

    await story.cluster.patch(CONFIG_MAPS, story.name, "data", {"data": {"text": "after"}})

    await eventually(lambda: _last_text_is(story, "after"))
    await story.cluster.request("DELETE", f"/apis/metacontroller.k8s.io/v1alpha1/decoratorcontrollers/{story.name}")


async def test_events_of_one_failure_are_one_event_with_a_count(story: Story) -> None:
    await story.controller(lambda _: {"children": [None]})
    await story.parent("p")
    await eventually(lambda: story.called(8))

    async def counted() -> None:
        event = await story.warning(of="p", containing="children[0]")
        expect(unstructured.integer(event, "count") > 3, f"its count is {event.get('count')}")

    await eventually(counted)
    found = [each for each in await _events_of(story, "p") if each.get("reason") == "SyncError"]
    # Each of the two reconcilers writes its own.
    assert len(found) <= 2


async def test_events_of_many_different_failures_are_limited_for_an_object(story: Story) -> None:
    """As client-go's correlator does it: more than ten similar ones become one, and no object gets more than 25 in a
    row.
    """
    numbers = iter(range(10_000))
    await story.controller(
        lambda _: {"status": None, "children": [{"kind": f"Nonesuch{next(numbers)}", "apiVersion": "v1", "metadata": {}}]}
    )
    await story.parent("p")
    changes = iter(range(_CHANGES))
    while len(story.calls()) < _FAILURES:
        await story.change("p", text=str(next(changes)))

    found = [each for each in await _events_of(story, "p") if each.get("reason") == "SyncError"]
    assert len(found) <= 2 * 11
    assert sum(unstructured.integer(each, "count") for each in found) <= 2 * 25


async def test_parent_with_five_hundred_children_is_served(story: Story) -> None:
    await story.controller()
    mark = story.lab.audit.mark()

    await story.parent("big", count=500, text="before")

    await eventually(lambda: story.settled("big", children=500), within_seconds=60)
    assert (await _writes_in(story, mark))["create configmaps"] == 500
    await story.change("big", text="after")
    await eventually(lambda: story.shows("big", text="after", children=500), within_seconds=60)
    await story.change("big", count=3)
    await eventually(lambda: story.settled("big", children=3), within_seconds=60)
    assert len(story.calls()) <= 20


async def test_children_of_two_kinds_and_many_parents_at_once(story: Story) -> None:
    secrets = ResourceId("v1", "secrets")

    def pairs(request: JsonObject) -> JsonObject:
        children = config_maps_of(request)
        return answer_with(request, [*children, *({**child, "kind": "Secret", "data": {}} for child in children)])

    await story.controller(pairs, children=[child_rule(), child_rule(secrets)])
    async with asyncio.TaskGroup() as tasks:
        for index in range(40):
            tasks.create_task(story.parent(f"p{index}"))

    await eventually(story.all_settled, within_seconds=60)


def _ignoring(story: Story) -> JsonObject:
    rule = unstructured.child_object(unstructured.child_object(story.controller_manifest(), "spec"), "parentResource")
    return {**rule, "ignoreStatusChanges": True}


async def _writes_in(story: Story, mark: int) -> Counter[str]:
    return tally([each for each in await story.lab.audit.ours_since(mark) if each.is_write and each.namespace == story.name])


async def _status_is(story: Story, name: str, expected: JsonObject) -> None:
    found = await story.status(name)
    expect(found == expected, f"the status of {name} is {found}, not {expected}")


async def _last_text_is(story: Story, text: str) -> None:
    request = story.calls()[-1].request
    data = unstructured.child_object(unstructured.child_object(request, "object"), "data")
    expect(data.get("text") == text, f"the hook was shown {data} last")


async def _events_of(story: Story, name: str) -> list[JsonObject]:
    found = await story.cluster.list(EVENTS, story.name)
    return [each for each in found if unstructured.child_object(each, "involvedObject").get("name") == name]
